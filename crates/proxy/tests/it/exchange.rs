//! A running proxy, a service that records the bytes of requests, and a client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use epitome_passes::built_in;
use epitome_proxy::{Options, Proxy, Server, Upstream};
use epitome_tokens::O200k;
use tokio::sync::oneshot;

/// An HTTP message: its first line, its headers in lower case, its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub first: String,
    /// The headers as they were written.
    pub lines: Vec<String>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn read(from: &mut impl BufRead) -> Option<Message> {
        let mut message = Message::read_head(from)?;
        if let Some(length) = message.header("content-length") {
            message.body = vec![0; length.parse().expect("a number")];
            from.read_exact(&mut message.body).ok()?;
        } else if message.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = read_chunk(from).filter(|chunk| !chunk.is_empty()) {
                message.body.extend(chunk);
            }
        }
        Some(message)
    }

    fn read_head(from: &mut impl BufRead) -> Option<Message> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).ok().filter(|n| *n > 0)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let header = |line: &String| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_lowercase(), value.trim().to_owned())
        };
        let first = lines.remove(0);
        let headers = lines.iter().map(header).collect();
        Some(Message { first, lines, headers, body: Vec::new() })
    }
}

/// The next chunk of a body; empty at its end.
fn read_chunk(from: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut size = String::new();
    from.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    from.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(chunk)
}

/// A function that sends the response of a service: it gets the request's number from 0, the
/// request, and the connection.
type Respond = dyn Fn(usize, &Message, &mut TcpStream) + Send + Sync;

/// A service that records requests.
pub struct Service {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Message>>>,
}

impl Service {
    /// Answers each request with `respond`, which gets its number from 0.
    pub fn start(
        respond: impl Fn(usize, &Message, &mut TcpStream) + Send + Sync + 'static,
    ) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (known, respond): (_, Arc<Respond>) = (Arc::clone(&requests), Arc::new(respond));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (known, respond) = (Arc::clone(&known), Arc::clone(&respond));
                std::thread::spawn(move || Service::serve(stream, &known, &*respond));
            }
        });
        Service { address, requests }
    }

    fn serve(mut stream: TcpStream, known: &Mutex<Vec<Message>>, respond: &Respond) {
        let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
        while let Some(message) = Message::read(&mut reader) {
            let number = {
                let mut known = known.lock().expect("no test panicked");
                known.push(message.clone());
                known.len() - 1
            };
            respond(number, &message, &mut stream);
        }
    }

    /// Answers each request with `respond`, and keeps none.
    #[allow(dead_code)] // Only examples call it.
    pub fn quiet(respond: impl Fn(&Message, &mut TcpStream) + Send + Sync + 'static) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let respond = Arc::new(respond);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let respond = Arc::clone(&respond);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
                    while let Some(message) = Message::read(&mut reader) {
                        respond(&message, &mut stream);
                    }
                });
            }
        });
        Service { address, requests: Arc::default() }
    }

    /// Answers each request with this status and JSON.
    pub fn answering(status: u16, body: &'static str) -> Service {
        Service::start(move |_, _, stream| send(stream, status, "application/json", body))
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Message> {
        self.requests.lock().expect("no test panicked").clone()
    }

    /// The bodies of all requests as text.
    pub fn bodies(&self) -> Vec<String> {
        let text = |message: Message| String::from_utf8(message.body).expect("text");
        self.requests().into_iter().map(text).collect()
    }
}

/// Sends a response.
pub fn send(stream: &mut TcpStream, status: u16, kind: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // In some tests the other side has gone, so an error is ignored.
    stream.write_all(head.as_bytes()).ok();
}

/// A proxy that runs until it is dropped.
pub struct Running {
    pub address: String,
    pub proxy: Arc<Proxy>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts a proxy before a service, with its memo in `folder`.
    pub fn start(service: &str, folder: &Path, change: impl FnOnce(Options) -> Options) -> Running {
        let recipe = built_in("epitome").expect("a recipe of the program");
        let options = Options {
            upstream: Some(Upstream::parse(service).expect("an address")),
            ..Options::new(recipe, &const { O200k::new() }, folder.to_owned())
        };
        let server = Server::bind("127.0.0.1:0".parse().expect("an address"), change(options));
        let server = server.expect("a port");
        let (address, proxy) = (server.address(), server.proxy());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            server.run_until(async { drop(stopped.await) }).expect("it ends");
        });
        Running { address, proxy, stop: Some(stop), thread: Some(thread) }
    }

    /// Connects to the proxy.
    pub fn connect(&self) -> Client {
        Client::to(&self.address)
    }

    /// Sends a request on a new connection, and returns the response.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Message {
        let mut client = self.connect();
        client.send("POST", path, headers, body.as_bytes());
        client.response().expect("a response")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A connection to the proxy.
pub struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    prefix: String,
}

impl Client {
    /// Connects to the host of a base URL, whose path is before that of each request.
    pub fn to(address: &str) -> Client {
        let address = &address["http://".len()..];
        let (host, prefix) = match address.split_once('/') {
            Some((host, path)) => (host, format!("/{path}")),
            None => (address, String::new()),
        };
        let stream = TcpStream::connect(host).expect("it listens");
        let reader = BufReader::new(stream.try_clone().expect("a socket"));
        Client { stream, reader, prefix }
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        self.send_to("proxy.local", method, path, headers, body);
    }

    /// Sends a request that names this host.
    pub fn send_to(
        &mut self,
        host: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) {
        let mut head = format!("{method} {}{path} HTTP/1.1\r\nhost: {host}\r\n", self.prefix);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| *name == "transfer-encoding") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        self.stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).expect("it is read");
    }

    /// The whole response; `None` if the connection ends before it does.
    pub fn response(&mut self) -> Option<Message> {
        Message::read(&mut self.reader)
    }

    /// The head of the response.
    pub fn head(&mut self) -> Message {
        Message::read_head(&mut self.reader).expect("a response")
    }

    /// The next chunk of the response's body; `None` if the connection ends.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        read_chunk(&mut self.reader)
    }
}

/// A gate that a service waits at until the test opens it.
pub fn gate() -> (Sender<()>, Mutex<Receiver<()>>) {
    let (open, opened) = channel();
    (open, Mutex::new(opened))
}

/// Everything that is left on a connection, read until the other side closes it.
pub fn rest(client: &mut Client) -> Vec<u8> {
    let mut rest = Vec::new();
    client.reader.read_to_end(&mut rest).ok();
    rest
}
