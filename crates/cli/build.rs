//! Links the development build at a fixed address.
//!
//! By default the system may load the program at any address, and adjusts all pointers in its data
//! at each start. A development build has six megabytes of them: a start takes 22 milliseconds of
//! processor time, with a fixed address 5, and the tests start the program some thousand times.
//! Releases, and builds for other systems, keep the default.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_glibc && is("PROFILE", "debug") && env::var("HOST") == env::var("TARGET") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
