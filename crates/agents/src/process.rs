//! Processes by their ids.

#[cfg(target_os = "linux")]
use std::path::Path;

/// Whether a process with this id exists. True on systems where that cannot be found out.
pub fn is_running(process: u32) -> bool {
    name_of(process).is_some()
}

/// The name of a process; `None` if there is no process with this id.
#[cfg(target_os = "linux")]
pub(crate) fn name_of(pid: u32) -> Option<String> {
    let comm = format!("/proc/{pid}/comm");
    let name = epitome_store::regular::read_to_string(Path::new(&comm)).ok()?;
    Some(name.trim_end().to_owned())
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) fn name_of(pid: u32) -> Option<String> {
    let asked = std::process::Command::new("ps")
        .args(["-o", "comm=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let name = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// The name is unknown on systems other than Unix: every id is assumed to be that of a running
/// process.
#[cfg(not(unix))]
pub(crate) fn name_of(_: u32) -> Option<String> {
    Some(String::new())
}
