//! Removes API keys from the environment of this program, so that the programs that it starts
//! cannot read them.
//!
//! A variable that a process removes is still in its file `/proc/PID/environ`, which child
//! processes can read. So the program starts itself again without these variables, and receives
//! their values through a pipe.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

/// The variable that holds the number of the pipe's file descriptor.
pub(super) const VARIABLE: &str = "EPITOME_KEYS_FROM";

/// Starts this program again, without the variables `names`, if one of them is set. Call it before
/// threads are started or anything is read. It returns `Ok` only if none of the variables is set,
/// or if the system is not Unix.
///
/// # Errors
///
/// The errors of the operating system; an error if the names and values are together longer than 4
/// KiB. The environment is unchanged then.
#[cfg(unix)]
pub fn take_from_environment(names: &[&str]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    let mut text = Vec::new();
    for name in names {
        let Some(value) = std::env::var_os(name) else { continue };
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        text.push(0);
    }
    if text.is_empty() {
        return Ok(());
    }
    // A pipe holds at least this many bytes on every system, so writing them does not wait for a
    // reader.
    const ROOM: usize = 4 << 10;
    if text.len() > ROOM {
        return Err(io::Error::other("the keys in the environment are too long"));
    }
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(&text)?;
    drop(writer);
    rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::empty())?;
    let mut arguments = std::env::args_os();
    let mut again = Command::new(std::env::current_exe()?);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    again.args(arguments).env(VARIABLE, reader.as_raw_fd().to_string());
    for name in names {
        again.env_remove(name);
    }
    Err(again.exec())
}

/// Does nothing: the keys are removed only on Unix.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn take_from_environment(_: &[&str]) -> io::Result<()> {
    Ok(())
}

/// The variables that were removed from the environment before this program was started again.
#[cfg(unix)]
pub(super) fn handed_over() -> BTreeMap<String, OsString> {
    use std::os::unix::ffi::OsStringExt as _;

    let number = std::env::var(VARIABLE).ok().and_then(|text| text.parse::<u32>().ok());
    let Some(number) = number else { return BTreeMap::new() };
    let bytes = read_pipe(&format!("/dev/fd/{number}")).unwrap_or_default();
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let name = String::from_utf8(pair[..at].to_vec()).ok()?;
        Some((name, OsString::from_vec(pair[at + 1..].to_vec())))
    });
    pairs.collect()
}

#[cfg(not(unix))]
pub(super) fn handed_over() -> BTreeMap<String, OsString> {
    BTreeMap::new()
}

/// Reads everything that is in a pipe. Returns nothing for a file that is not a pipe: another
/// program may have set [`VARIABLE`] to the number of any open file.
#[cfg(unix)]
#[expect(clippy::disallowed_methods, reason = "a pipe is no regular file")]
fn read_pipe(path: &str) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};

    if !std::fs::metadata(path)?.file_type().is_fifo() {
        return Ok(Vec::new());
    }
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe = std::fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes)?;
    Ok(bytes)
}
