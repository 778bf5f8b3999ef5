//! Packs are pushed by one machine, and restored on another.

use epitome_remote::SealKey;
use epitome_store::archive::SessionKey;

use crate::machine::{BEFORE, Machine};
use crate::server::Server;

#[test]
fn a_session_is_restored_on_a_second_machine() {
    let server = Server::start();
    let seal = SealKey::generate();
    let key = SessionKey::new("claude", "0f3c9a52");
    let first = Machine::new(&seal);
    let after = first.compact(&key, BEFORE, b"a long result");
    let remote = first.remote(&server, server.address);
    let pushed = first.push(&remote).expect("pushed");
    assert_eq!((pushed.pushed, pushed.known), (1, 0));
    let again = first.push(&remote).expect("pushed");
    assert_eq!((again.pushed, again.known), (0, 1));

    let second = Machine::new(&seal);
    let remote = second.remote(&server, server.address);
    let pulled = second.pull(&remote, Some(&key)).expect("pulled");
    assert_eq!((pulled.packs.added.len(), pulled.packs.known), (1, 0));
    assert_eq!(second.restored(&key, &after), BEFORE);
    second.verify();
    let again = second.pull(&remote, None).expect("pulled");
    assert_eq!((again.packs.added.len(), again.packs.known), (0, 1));
    let back = second.push(&remote).expect("pushed");
    assert_eq!((back.pushed, back.known), (0, 1), "the same pack is stored once");
}

#[test]
fn nothing_in_the_bucket_reveals_a_session() {
    let server = Server::start();
    let machine = Machine::new(&SealKey::generate());
    let key = SessionKey::new("claude", "0f3c9a52");
    machine.compact(&key, BEFORE, b"a long result");
    machine.push(&machine.remote(&server, server.address)).expect("pushed");
    let objects = server.objects();
    assert_eq!(objects.len(), 2, "{objects:?}");
    for object in objects {
        let bytes = std::fs::read(&object).expect("an object");
        let text = format!("{} {}", object.display(), String::from_utf8_lossy(&bytes));
        for secret in ["claude", "0f3c9a52", "000001", "a long result", "EPITPACK", "jsonl"] {
            assert!(!text.contains(secret), "{secret} in {}", object.display());
        }
    }
}
