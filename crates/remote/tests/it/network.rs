//! A network that fails: a proxy in front of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Server;

/// What happens after a direction has carried the number of bytes that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The connection ends, and the next one works.
    Once,
    /// The connection ends, and each one after it, until the network is [healed](Network::heal).
    Forever,
}

/// Which bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    FromServer,
}

/// A network between the machines of a test and a server.
pub struct Network {
    pub address: SocketAddr,
    links: Arc<Links>,
}

struct Links {
    to_server: Link,
    from_server: Link,
}

impl Links {
    fn link(&self, direction: Direction) -> &Link {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::FromServer => &self.from_server,
        }
    }
}

/// One direction: how many bytes it still carries.
struct Link {
    left: AtomicI64,
    /// 1 for [`Cut::Once`], 0 for [`Cut::Forever`].
    once: AtomicI64,
    /// 1 after a cut, 0 before it.
    was_cut: AtomicI64,
}

impl Network {
    pub fn new(server: &Server) -> Network {
        let links = Arc::new(Links { to_server: Link::whole(), from_server: Link::whole() });
        let listener = server.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a listening socket");
        let address = listener.local_addr().expect("an address");
        server.runtime.spawn(carry(listener, server.address, Arc::clone(&links)));
        Network { address, links }
    }

    /// Ends a connection after `bytes` in one direction.
    pub fn cut(&self, direction: Direction, bytes: i64, cut: Cut) {
        let link = self.links.link(direction);
        link.was_cut.store(0, Ordering::SeqCst);
        link.once.store(i64::from(cut == Cut::Once), Ordering::SeqCst);
        link.left.store(bytes, Ordering::SeqCst);
    }

    /// Whether the bytes until a cut are not used up.
    pub fn is_pending(&self, direction: Direction) -> bool {
        self.links.link(direction).was_cut.load(Ordering::SeqCst) == 0
    }

    pub fn heal(&self) {
        for link in [&self.links.to_server, &self.links.from_server] {
            link.left.store(i64::MAX, Ordering::SeqCst);
        }
    }
}

impl Link {
    fn whole() -> Link {
        Link { left: AtomicI64::new(i64::MAX), once: AtomicI64::new(0), was_cut: AtomicI64::new(0) }
    }

    /// Carries bytes until the connection ends, or is cut.
    async fn pump(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> std::io::Result<()> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let n = from.read(&mut buffer).await?;
            if n == 0 {
                return to.shutdown().await;
            }
            let left = self.left.load(Ordering::SeqCst);
            if left >= n as i64 {
                if left != i64::MAX {
                    self.left.fetch_sub(n as i64, Ordering::SeqCst);
                }
                to.write_all(&buffer[..n]).await?;
                continue;
            }
            to.write_all(&buffer[..left.max(0) as usize]).await?;
            to.flush().await?;
            self.was_cut.store(1, Ordering::SeqCst);
            let next = if self.once.load(Ordering::SeqCst) == 1 { i64::MAX } else { 0 };
            self.left.store(next, Ordering::SeqCst);
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
    }
}

async fn carry(listener: TcpListener, server: SocketAddr, links: Arc<Links>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let links = Arc::clone(&links);
        tokio::spawn(async move {
            let server = TcpStream::connect(server).await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let (client_reads, client_writes) = client.into_split();
            let (server_reads, server_writes) = server.into_split();
            // The first error ends both directions, and with them both connections.
            tokio::try_join!(
                links.to_server.pump(client_reads, server_writes),
                links.from_server.pump(server_reads, client_writes),
            )
        });
    }
}
