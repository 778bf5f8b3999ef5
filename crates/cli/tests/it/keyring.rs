//! API keys in the platform's keyring: a Secret Service on a message bus for the test.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::world::World;
use zbus::ObjectServer;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

const KEY: &str = "sk-test-0123456789abcdefghij";
const ROOT: &str = "/org/freedesktop/secrets";
const COLLECTION: &str = "/org/freedesktop/secrets/collection/login";

/// Session, parameters, value and type, as the specification names them.
type Secret = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

/// The content of the service: items by number, and whether they are locked.
#[derive(Debug, Default)]
struct Stored {
    items: BTreeMap<u32, (HashMap<String, String>, Secret)>,
    is_locked: bool,
}

type Store = Arc<Mutex<Stored>>;

fn path(path: &str) -> OwnedObjectPath {
    OwnedObjectPath::try_from(path).expect("a path")
}

fn item_path(number: u32) -> OwnedObjectPath {
    path(&format!("{COLLECTION}/{number}"))
}

struct Service(Store);

#[zbus::interface(name = "org.freedesktop.Secret.Service")]
impl Service {
    /// The service's public key is 1, so that every session has the same key: the service needs no
    /// cryptography.
    fn open_session(&self, algorithm: &str, _public: Value<'_>) -> (OwnedValue, OwnedObjectPath) {
        assert_eq!(algorithm, "dh-ietf1024-sha256-aes128-cbc-pkcs7");
        let public = OwnedValue::try_from(Value::from(vec![1_u8])).expect("a value");
        (public, path("/org/freedesktop/secrets/session/1"))
    }

    fn search_items(
        &self,
        wanted: HashMap<String, String>,
    ) -> (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) {
        let stored = self.0.lock().expect("one at a time");
        let has = |known: &HashMap<String, String>| {
            wanted.iter().all(|(name, value)| known.get(name) == Some(value))
        };
        let found = stored.items.iter().filter(|(_, (known, _))| has(known));
        let found = found.map(|(number, _)| item_path(*number)).collect();
        if stored.is_locked { (Vec::new(), found) } else { (found, Vec::new()) }
    }

    fn unlock(&self, objects: Vec<OwnedObjectPath>) -> (Vec<OwnedObjectPath>, OwnedObjectPath) {
        self.0.lock().expect("one at a time").is_locked = false;
        (objects, path("/"))
    }

    fn read_alias(&self, name: &str) -> OwnedObjectPath {
        path(if name == "default" { COLLECTION } else { "/" })
    }
}

struct Collection(Store);

#[zbus::interface(name = "org.freedesktop.Secret.Collection")]
impl Collection {
    async fn create_item(
        &self,
        properties: HashMap<String, OwnedValue>,
        secret: Secret,
        _replace: bool,
        #[zbus(object_server)] server: &ObjectServer,
    ) -> (OwnedObjectPath, OwnedObjectPath) {
        let attributes = properties["org.freedesktop.Secret.Item.Attributes"].clone();
        let attributes = HashMap::try_from(attributes).expect("names and values");
        let number = {
            let mut stored = self.0.lock().expect("one at a time");
            assert!(!stored.is_locked, "nothing is stored in a locked collection");
            let number = stored.items.len() as u32 + 1;
            stored.items.insert(number, (attributes, secret));
            number
        };
        let item = Item { store: Arc::clone(&self.0), number };
        server.at(item_path(number), item).await.expect("an object");
        (item_path(number), path("/"))
    }

    #[zbus(property)]
    fn locked(&self) -> bool {
        self.0.lock().expect("one at a time").is_locked
    }
}

struct Item {
    store: Store,
    number: u32,
}

#[zbus::interface(name = "org.freedesktop.Secret.Item")]
impl Item {
    fn get_secret(&self, _session: OwnedObjectPath) -> (Secret,) {
        let stored = self.store.lock().expect("one at a time");
        assert!(!stored.is_locked, "a locked item shows nothing");
        (stored.items[&self.number].1.clone(),)
    }

    fn set_secret(&self, secret: Secret) {
        let mut stored = self.store.lock().expect("one at a time");
        stored.items.get_mut(&self.number).expect("it is stored").1 = secret;
    }

    fn delete(&self) -> OwnedObjectPath {
        self.store.lock().expect("one at a time").items.remove(&self.number);
        path("/")
    }

    #[zbus(property)]
    fn locked(&self) -> bool {
        self.store.lock().expect("one at a time").is_locked
    }
}

/// A message bus that ends with the test.
struct Bus {
    daemon: Child,
    address: String,
}

impl Bus {
    /// None if no D-Bus daemon is installed.
    fn start(folder: &Path) -> Option<Bus> {
        let mut daemon = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address"])
            .arg(format!("--address=unix:path={}", folder.join("bus").display()))
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut address = String::new();
        let stdout = daemon.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut address).expect("an address");
        Some(Bus { daemon, address: address.trim().to_owned() })
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.daemon.kill().ok();
        self.daemon.wait().ok();
    }
}

/// A home, a message bus, and the program connected to it.
struct Desktop {
    world: World,
    bus: Bus,
}

impl Desktop {
    fn run(&self, args: &[&str], stdin: &str) -> String {
        let mut command = self.world.command(args);
        command.env_remove("EPITOME_KEYRING").env("DBUS_SESSION_BUS_ADDRESS", &self.bus.address);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        child.stdin.take().expect("it is piped").write_all(stdin.as_bytes()).ok();
        self.world.terminal(args, &child.wait_with_output().expect("the program ends"))
    }
}

#[test]
fn a_key_is_stored_encrypted_found_replaced_and_removed() {
    let world = World::new();
    let Some(bus) = Bus::start(&world.home) else {
        fixtures::skipped("keys in the keyring", "no dbus-daemon is installed");
        return;
    };
    let store = Store::default();
    let connection = zbus::blocking::connection::Builder::address(&*bus.address)
        .and_then(|builder| builder.serve_at(ROOT, Service(Arc::clone(&store))))
        .and_then(|builder| builder.serve_at(COLLECTION, Collection(Arc::clone(&store))))
        .and_then(|builder| builder.name("org.freedesktop.secrets"))
        .and_then(|builder| builder.build())
        .expect("a service on the bus");
    let desktop = Desktop { world, bus };
    let place = || {
        let listed = desktop.run(&["key", "list", "--json"], "");
        let line = listed.lines().find(|line| line.contains("\"anthropic\"")).expect("a line");
        let listed: serde_json::Value = serde_json::from_str(line).expect("JSON");
        listed["place"].clone()
    };
    let stored = || {
        let stored = store.lock().expect("one at a time");
        let items = stored.items.values().cloned();
        items.map(|(attributes, secret)| (BTreeMap::from_iter(attributes), secret.2)).collect()
    };
    let set = |key: &str| {
        let done = desktop.run(&["key", "set", "anthropic"], &format!("{key}\n"));
        assert!(done.ends_with("--- status 0\n") && !done.contains(key), "{done}");
    };

    assert_eq!(place(), serde_json::Value::Null);
    store.lock().expect("one at a time").is_locked = true;
    set(KEY);
    let first: Vec<(BTreeMap<String, String>, Vec<u8>)> = stored();
    let owned = |text: &str| text.to_owned();
    let attributes = [("service", "epitome"), ("username", "anthropic")];
    let attributes = attributes.map(|(name, value)| (owned(name), owned(value)));
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].0, BTreeMap::from(attributes), "as versions before stored it");
    assert_ne!(first[0].1, KEY.as_bytes(), "it is encrypted on its way");

    store.lock().expect("one at a time").is_locked = true;
    assert_eq!(place(), "keyring", "a locked entry is unlocked and read");
    set("sk-test-another-key-0123456789");
    let second: Vec<(BTreeMap<String, String>, Vec<u8>)> = stored();
    assert_eq!(second.len(), 1, "a second key replaces the first");
    assert_ne!(second[0].1, first[0].1);

    assert!(desktop.run(&["key", "remove", "anthropic"], "").ends_with("--- status 0\n"));
    assert_eq!(place(), serde_json::Value::Null);
    assert!(store.lock().expect("one at a time").items.is_empty());
    connection.close().expect("the bus is there");
}
