//! The local viewer.
//!
//! # Absent
//!
//! Anything that the library cannot do: the viewer asks it and shows what it says. Any address but
//! that of this machine.
