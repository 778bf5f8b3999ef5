//! A command with a pipe, on systems without Unix terminals.

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::ReadResult;

/// A running command.
pub(super) struct Running {
    pub(super) child: Child,
    chunks: Receiver<Vec<u8>>,
}

impl Running {
    /// Starts a command.
    pub(super) fn start(mut command: Command) -> io::Result<Running> {
        let (mut reader, writer) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let child = command.spawn()?;
        // The pipe ends when the last process closes it, so this program's own copy must be closed.
        drop(command);
        let (sender, chunks) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; super::READ];
            while let Ok(read) = reader.read(&mut buffer) {
                if read == 0 || sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Running { child, chunks })
    }

    /// Reads output. If there is none yet, waits for it, at most as long as `wait`.
    pub(super) fn read(&mut self, wait: Duration, buffer: &mut [u8]) -> ReadResult {
        match self.chunks.recv_timeout(wait) {
            Ok(bytes) => {
                buffer[..bytes.len()].copy_from_slice(&bytes);
                ReadResult::Bytes(bytes.len())
            }
            Err(RecvTimeoutError::Timeout) => ReadResult::Nothing,
            Err(RecvTimeoutError::Disconnected) => ReadResult::End,
        }
    }

    /// Kills the command.
    pub(super) fn kill(&mut self) {
        // Errors are ignored: the command may have ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
