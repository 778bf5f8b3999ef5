//! Links the development build at a fixed address.
//!
//! A program that the system may load at any address has six megabytes of pointers in a development
//! build, all of which are adjusted at each start: a start takes 5 milliseconds of processor time
//! instead of 22, and the tests start the program some thousand times. Releases are not affected.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_glibc = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|name| name == "gnu")
        && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|name| name == "linux");
    if is_glibc && env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
