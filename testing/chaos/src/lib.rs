//! Injects faults into the program, by seed: kills, errors of system calls, full disks, damaged
//! archives, damaged sessions, busy writers, killed proxies, killed keepers and hostile homes.
//!
//! Each case starts in a home folder of its own, disturbs a command there, and then checks what
//! `docs/invariants.md` promises: every file has its old or its new content, the original can be
//! restored byte for byte, the archive is sound, nothing is left behind, nothing panics or hangs. A
//! case is determined by its scenario and its number, except for the moment of a kill.
//!
//! # Absent
//!
//! Power cuts: data that was written and not flushed survives a kill.

mod call;
mod case;
mod damage;
mod disk;
mod hostile;
mod kill;
mod machine;
mod mutant;
mod numbers;
mod proxy;
mod subject;
mod task;
mod used;
mod vault;
mod violation;
mod writer;

mod campaign;

pub use campaign::{Campaign, Figures, Report, Scenario, run};
pub use used::fill;
pub use violation::{Kind, Violation};
