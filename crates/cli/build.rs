//! Links the development build at a fixed address.
//!
//! A program that the system may load at any address has six megabytes of pointers in a development
//! build, all of which are adjusted at each start: a start takes 22 milliseconds of processor time
//! in place of 5, and the tests start the program some thousand times. Releases, and builds for
//! other systems, are linked as ever.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_glibc && is("PROFILE", "debug") && env::var("HOST") == env::var("TARGET") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
