//! A server of S3 on the loopback device, whose data is a temporary folder.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

pub const BUCKET: &str = "bucket";
const KEY: &str = "test-key";
const SECRET: &str = "test-secret";

/// The server. It stops when this value is dropped.
pub struct Server {
    pub address: SocketAddr,
    /// Whether listings show nothing, as those of a service that needs time.
    pub lags: Arc<AtomicBool>,
    folder: tempfile::TempDir,
    pub runtime: Runtime,
}

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(BUCKET)).expect("a bucket");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener =
            runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a listening socket");
        let address = listener.local_addr().expect("an address");
        let files = s3s_fs::FileSystem::new(folder.path()).expect("a file system");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let lags = Arc::new(AtomicBool::new(false));
        runtime.spawn(serve(listener, builder.build(), Arc::clone(&lags)));
        Server { address, lags, folder, runtime }
    }

    /// The variables with which the server is reached at `address`, its own or that of a proxy.
    pub fn options(&self, address: SocketAddr) -> Vec<(String, String)> {
        with_secret(address, SECRET)
    }

    /// The files of the bucket's objects, sorted.
    pub fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        add_files(&self.folder.path().join(BUCKET), &mut found);
        found.sort();
        found
    }
}

pub fn with_secret(address: SocketAddr, secret: &str) -> Vec<(String, String)> {
    let endpoint = format!("http://{address}");
    [
        ("AWS_ACCESS_KEY_ID", KEY),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AWS_ENDPOINT_URL", &endpoint),
        ("AWS_REGION", "us-east-1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

const NOTHING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>\
    <Name>bucket</Name><KeyCount>0</KeyCount><MaxKeys>1000</MaxKeys>\
    <IsTruncated>false</IsTruncated></ListBucketResult>";

async fn serve(listener: TcpListener, service: s3s::service::S3Service, lags: Arc<AtomicBool>) {
    // The server looks whether an object exists, and then creates it: a real one does both at once.
    let one_at_a_time = Arc::new(Mutex::new(()));
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        socket.set_nodelay(true).ok();
        let (service, lock) = (service.clone(), Arc::clone(&one_at_a_time));
        let lags = Arc::clone(&lags);
        let answer = service_fn(move |request: hyper::Request<Incoming>| {
            let (service, lock) = (service.clone(), Arc::clone(&lock));
            let is_listing = request.uri().query().is_some_and(|it| it.contains("list-type=2"));
            let is_empty = is_listing && lags.load(Ordering::SeqCst);
            async move {
                if is_empty {
                    return Ok(hyper::Response::new(s3s::Body::from(NOTHING.to_owned())));
                }
                let _locked = lock.lock().await;
                service.call(request.map(s3s::Body::from)).await
            }
        });
        let connection = hyper::server::conn::http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(socket), answer));
    }
}

fn add_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => add_files(&path, found),
            path => found.push(path),
        }
    }
}
