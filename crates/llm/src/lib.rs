//! Models that are asked for a summary.
//!
//! # Absent
//!
//! What is asked, and what becomes of the answer: `epitome-passes` says so. Tools, and talks.
