//! Where packs and shared sessions are stored: [`Address`], and how requests are repeated:
//! [`Retries`].

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use epitome_error::{Error, ErrorKind, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use url::{Host, Url};

/// An address in object storage, such as the address of a remote archive.
///
/// ```
/// use epitome_remote::Address;
///
/// let address: Address = "s3://bucket/epitome".parse()?;
/// assert_eq!(address.to_string(), "s3://bucket/epitome");
/// assert!("ftp://host/".parse::<Address>().is_err());
/// # Ok::<(), epitome_error::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    service: Service,
    url: Url,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    S3,
    Google,
    Azure,
    Folder,
}

/// How failed requests are repeated, and the timeouts of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How many times a request is repeated at most.
    pub count: usize,
    /// The wait before the first repetition. Each further wait is about twice as long.
    pub first_wait: Duration,
    /// How long after its first attempt a request may be repeated.
    pub until: Duration,
    /// The timeout for making a connection.
    pub connect: Duration,
    /// The timeout of one request, with its body. A pack is sent in bodies of at most 8 MiB.
    pub request: Duration,
}

impl Retries {
    /// For a transfer that the user requested: a failed request is repeated up to eight times, for
    /// up to two minutes.
    pub const LONG: Retries = Retries {
        count: 8,
        first_wait: Duration::from_millis(200),
        until: Duration::from_secs(120),
        connect: Duration::from_secs(10),
        request: Duration::from_secs(120),
    };
    /// For a transfer at the end of another command: if there is no network, the transfer must not
    /// delay the command. A failed request is repeated once, within three seconds; a request that
    /// the service accepts and does not answer fails after 15 seconds.
    pub const SHORT: Retries = Retries {
        count: 1,
        first_wait: Duration::from_millis(100),
        until: Duration::from_secs(3),
        connect: Duration::from_secs(2),
        request: Duration::from_secs(15),
    };

    fn retry(self) -> RetryConfig {
        let backoff = BackoffConfig { init_backoff: self.first_wait, ..BackoffConfig::default() };
        RetryConfig { backoff, max_retries: self.count, retry_timeout: self.until }
    }
}

impl Address {
    /// Makes a client of the storage service. Also returns the path that the paths of all objects
    /// begin with. No request is made. A folder is created if it does not exist. `options` are
    /// variables of the environment as the service's own tools read them, such as
    /// `AWS_ACCESS_KEY_ID`; variables with unknown names are ignored.
    ///
    /// # Errors
    ///
    /// `Settings` if the address or an option is invalid; the errors of creating the folder.
    pub(crate) fn connect(
        &self,
        options: &[(String, String)],
        retries: Retries,
    ) -> Result<(Arc<dyn ObjectStore>, ObjectPath)> {
        epitome_llm::prepare_tls();
        let prefix = ObjectPath::from(self.url.path().trim_matches('/'));
        let retry = retries.retry();
        let client = ClientOptions::new()
            .with_connect_timeout(retries.connect)
            .with_timeout(retries.request)
            .with_allow_http(options.iter().any(|(_, value)| is_here(value)));
        let objects: Result<Arc<dyn ObjectStore>, object_store::Error> = match self.service {
            Service::S3 => {
                let builder = AmazonS3Builder::new().with_client_options(client);
                let builder = with_options(options, builder, |builder, name, value| {
                    let key: AmazonS3ConfigKey = name.parse().ok()?;
                    Some(builder.with_config(key, value))
                });
                builder
                    .with_bucket_name(self.host())
                    .with_retry(retry)
                    .build()
                    .map(|store| Arc::new(store) as _)
            }
            Service::Google => {
                let builder = GoogleCloudStorageBuilder::new().with_client_options(client);
                let builder = with_options(options, builder, |builder, name, value| {
                    let key: GoogleConfigKey = name.parse().ok()?;
                    Some(builder.with_config(key, value))
                });
                builder
                    .with_bucket_name(self.host())
                    .with_retry(retry)
                    .build()
                    .map(|store| Arc::new(store) as _)
            }
            Service::Azure => {
                let builder = MicrosoftAzureBuilder::new().with_client_options(client);
                let builder = with_options(options, builder, |builder, name, value| {
                    let key: AzureConfigKey = name.parse().ok()?;
                    Some(builder.with_config(key, value))
                });
                builder
                    .with_container_name(self.host())
                    .with_retry(retry)
                    .build()
                    .map(|store| Arc::new(store) as _)
            }
            Service::Folder => return self.folder(),
        };
        let objects = objects.map_err(|err| self.invalid("it cannot be used").because(err))?;
        Ok((objects, prefix))
    }

    /// The store in a folder, which is created if it does not exist.
    fn folder(&self) -> Result<(Arc<dyn ObjectStore>, ObjectPath)> {
        let folder: PathBuf =
            self.url.to_file_path().map_err(|()| self.invalid("not the path of a folder"))?;
        epitome_store::store::disk::private_folder(&folder)?;
        let objects = LocalFileSystem::new_with_prefix(&folder)
            .map_err(|err| self.invalid("it cannot be used").because(err))?;
        Ok((Arc::new(objects.with_fsync(true)), ObjectPath::default()))
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    fn invalid(&self, why: &str) -> Error {
        Error::new(ErrorKind::Settings, format!("invalid address of object storage {self}: {why}"))
    }
}

/// Sets options with `apply`, which returns `None` for a name that the service does not have. Such
/// options are ignored.
fn with_options<B: Clone>(
    options: &[(String, String)],
    builder: B,
    apply: impl Fn(B, &str, &str) -> Option<B>,
) -> B {
    options.iter().fold(builder, |builder, (name, value)| {
        let name = name.to_ascii_lowercase();
        apply(builder.clone(), &name, value).unwrap_or(builder)
    })
}

/// Whether the value of an option is an `http` address of this machine. Connections without TLS are
/// allowed only if an option has such a value.
fn is_here(value: &str) -> bool {
    let Ok(url) = Url::parse(value) else { return false };
    let is_loopback = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "http" && is_loopback
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address> {
        let invalid = |why: &str| {
            Error::new(
                ErrorKind::Settings,
                format!("invalid address of object storage {text}: {why}"),
            )
            .with_hint("for example s3://bucket/epitome, gs://…, az://… or file:///folder")
        };
        let url = Url::parse(text).map_err(|err| invalid("not a URL").because(err))?;
        let service = match url.scheme() {
            "s3" => Service::S3,
            "gs" => Service::Google,
            "az" => Service::Azure,
            "file" => Service::Folder,
            _ => return Err(invalid("no such kind of storage")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("it contains a key, which belongs in the environment"));
        }
        if service != Service::Folder && url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("it names no bucket"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("`?` and `#` mean nothing in it"));
        }
        Ok(Address { service, url })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.url.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_bucket_and_no_key() {
        for good in ["s3://b", "s3://b/a/c", "gs://b/x", "az://c", "file:///x/y"] {
            assert!(good.parse::<Address>().is_ok(), "{good}");
        }
        for (wrong, why) in [
            ("bucket", "not a URL"),
            ("https://host/b", "no such kind of storage"),
            ("s3:///x", "it names no bucket"),
            ("s3://key:secret@b/x", "it contains a key"),
            ("s3://b?x=1", "mean nothing"),
        ] {
            let err = wrong.parse::<Address>().expect_err(wrong);
            assert!(err.to_string().contains(why), "{wrong}: {err}");
        }
    }

    #[test]
    fn only_this_machine_is_reached_without_tls() {
        for (value, expected) in [
            ("http://127.0.0.1:9000", true),
            ("http://localhost:9000", true),
            ("https://127.0.0.1:9000", false),
            ("http://10.0.0.1:9000", false),
            ("http://127.0.0.1.example", false),
            ("secret", false),
        ] {
            assert_eq!(is_here(value), expected, "{value}");
        }
    }
}
