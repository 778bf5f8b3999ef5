//! Frees the memory of the program's code while a command waits for hours.

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The time after the last work at which a command counts as idle.
const IDLE: Duration = Duration::from_secs(10);

/// Frees the pages of the program's file in memory each time a command has become idle.
///
/// A command that scans thousands of sessions and then waits for changes has most of the program's
/// file in memory, and needs little of it while it waits. The system reads the pages again when
/// they are needed. This is best effort: nothing is freed on other systems than Linux, by a kernel
/// before 5.4, while another process runs the same program, or if the user may not write its file.
pub struct IdlePages(Sender<()>);

impl IdlePages {
    /// Starts a thread that ends when the returned value is dropped.
    pub fn new() -> IdlePages {
        let (sender, receiver) = channel();
        std::thread::spawn(move || free_when_idle(&receiver));
        IdlePages(sender)
    }

    /// Notes that the command has worked: pages are freed if it does not work again soon. To be
    /// called after work that needs much of the program, not after each look for changes, which
    /// would read the same pages again every time.
    pub fn note_work(&self) {
        // The thread ends only after this value.
        self.0.send(()).ok();
    }
}

fn free_when_idle(work: &Receiver<()>) {
    while work.recv().is_ok() {
        loop {
            match work.recv_timeout(IDLE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break free_program_pages(),
                // The command has ended.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Frees the pages of the program's file, and of libraries, that are mapped into this process.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe function gives this advice")]
fn free_program_pages() {
    use rustix::mm::{Advice, madvise};

    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for range in program_pages(&maps) {
        let address = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: the advice never changes what is read at an address. If a range is not mapped any
        // more, it is an error, which leaves the memory as it is.
        unsafe { madvise(address, range.len(), Advice::LinuxPageOut) }.ok();
    }
}

#[cfg(not(target_os = "linux"))]
fn free_program_pages() {}

/// The address ranges of files that are mapped only to be read or run, in the text of
/// `/proc/PID/maps` (`man 5 proc_pid_maps`): of each line the range, the permissions, the offset,
/// the device, the inode and the path.
fn program_pages(maps: &str) -> Vec<Range<usize>> {
    maps.lines().filter_map(program_page_range).collect()
}

fn program_page_range(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let path = fields.nth(3)?;
    if !permissions.starts_with("r-") || !path.starts_with('/') {
        return None;
    }
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_files_that_are_not_written_are_freed() {
        let maps = "\
5581a0000000-5581a0400000 r--p 00000000 fd:00 131 /usr/bin/a program
5581a0400000-5581a1400000 r-xp 00400000 fd:00 131 /usr/bin/a program
5581a1400000-5581a1500000 rw-p 01400000 fd:00 131 /usr/bin/a program
5581a2000000-5581a2100000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000021000 ---p 00000000 00:00 0
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0 [vdso]
not a line of it
";
        let expected = [0x5581_a000_0000..0x5581_a040_0000, 0x5581_a040_0000..0x5581_a140_0000];
        assert_eq!(program_pages(maps), expected);
    }
}
