//! Speed of the counters.

fn main() {
    divan::main();
}
