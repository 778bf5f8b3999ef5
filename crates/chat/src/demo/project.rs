//! The project of the demo: modules to read, an error to fix, and the long log of a build.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The number of modules.
pub(super) const MODULES: usize = 14;

/// Writes the project into a folder.
pub(super) fn write(root: &Path) -> std::io::Result<()> {
    fs::create_dir_all(root.join("src"))?;
    fs::write(root.join("build.log"), log())?;
    fs::write(root.join("src/pricing.rs"), pricing())?;
    for n in 0..MODULES {
        fs::write(root.join(format!("src/module_{n:02}.rs")), module(n))?;
    }
    Ok(())
}

fn module(n: usize) -> String {
    let mut text = format!("//! Rates of region {n}.\n\n");
    for k in 0..70 {
        let rate = (n * 7_919 + k * 104_729) % 9_973;
        let _infallible = writeln!(
            text,
            "pub const RATE_{n}_{k}: (u32, &str) = ({rate}, \"region {n} zone {k}\");"
        );
    }
    text
}

/// The source that has the error in line 118.
fn pricing() -> String {
    let mut text = String::from("//! Prices.\n\n");
    for k in 0..113 {
        let _infallible = writeln!(text, "pub const STEP_{k}: u64 = {};", k * 31 % 97);
    }
    text.push_str("\npub fn gross(net: u64, rate: f64) -> f64 {\n    net * rate\n}\n");
    text
}

fn log() -> String {
    let mut text = String::new();
    for k in 0..1_800 {
        let major = k * 7 % 5;
        let minor = k * 13 % 40;
        let _infallible = writeln!(text, "   Compiling crate-{k} v{major}.{minor}.{}", k % 9);
        if k == 1_200 {
            text.push_str(
                "error[E0308]: mismatched types\n   --> src/pricing.rs:118:11\n    |\n\
                 118 |     net * rate\n    |           ^^^^ expected `u64`, found `f64`\n",
            );
        }
    }
    text.push_str("error: could not compile `shop` (lib) due to 1 previous error\n");
    text
}
