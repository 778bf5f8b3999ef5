//! Tells the linker that Node has the functions that the module calls.

fn main() {
    napi_build::setup();
}
