//! The provider `pkcs11`: an AES-256 key in an HSM that it cannot leave.
//!
//! Keys are wrapped by AES-GCM with their context as associated data. PKCS#11 calls block, and a module may hang, so one
//! thread makes them all; requests that it does not answer in time fail without it.

mod session;

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cloakroom_crypto::Sensitive;
use cloakroom_platform::config;
use tokio::sync::{mpsc, oneshot};

pub use self::session::create_key;
use self::session::{Settings, TokenSession};
use crate::context::ProviderContext;
use crate::{Failure, Weakness};

/// How long the end of a node waits for a session to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const CLOSE_POLL: Duration = Duration::from_millis(5);
/// Requests that wait for the thread. A module that hangs blocks no more than these.
const QUEUE_MAX: usize = 64;

/// A handle to the thread that uses the token.
pub(crate) struct Token {
    name: String,
    /// `None` while this is dropped.
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is asked for. A request whose caller has left is skipped.
enum Request {
    Encrypt(Sensitive<Vec<u8>>, Vec<u8>, Reply<Vec<u8>>),
    Decrypt(Vec<u8>, Vec<u8>, Reply<Sensitive<Vec<u8>>>),
    Inspect(Reply<Vec<Weakness>>),
}

type Reply<T> = oneshot::Sender<Result<T, Failure>>;

impl Token {
    /// Starts the thread, which opens the token with the first request.
    pub(crate) fn new(config: &config::RootKey) -> Result<Self, Failure> {
        let settings = Settings::new(config)?;
        let name = settings.root_name();
        let (requests, received) = mpsc::channel(QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("pkcs11".to_owned())
            .spawn(move || serve(TokenSession::new(settings), received))
            .map_err(|_| Failure::Unavailable("no thread could be started"))?;
        Ok(Self {
            name,
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    pub(crate) fn root_name(&self) -> String {
        self.name.clone()
    }

    pub(crate) async fn encrypt(
        &self,
        raw: Sensitive<Vec<u8>>,
        context: ProviderContext,
    ) -> Result<Vec<u8>, Failure> {
        self.ask(|reply| Request::Encrypt(raw, context.aad, reply))
            .await
    }

    pub(crate) async fn decrypt(
        &self,
        ciphertext: &[u8],
        context: ProviderContext,
    ) -> Result<Sensitive<Vec<u8>>, Failure> {
        let ciphertext = ciphertext.to_vec();
        self.ask(|reply| Request::Decrypt(ciphertext, context.aad, reply))
            .await
    }

    pub(crate) async fn weaknesses(&self) -> Result<Vec<Weakness>, Failure> {
        self.ask(Request::Inspect).await
    }

    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Failure> {
        let stopped = || Failure::Unavailable("the thread of the PKCS#11 module has stopped");
        let (reply, answer) = oneshot::channel();
        let request = request(reply);
        let requests = self.requests.as_ref().ok_or_else(stopped)?;
        requests.send(request).await.map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl Drop for Token {
    /// Waits until the session is closed: a module that is in use while the process ends may crash it. A module that hangs
    /// is left behind.
    fn drop(&mut self) {
        drop(self.requests.take());
        let Some(thread) = self.thread.take() else {
            return;
        };
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(CLOSE_POLL);
        }
    }
}

/// Answers requests until the handle is dropped.
fn serve(mut token: TokenSession, mut requests: mpsc::Receiver<Request>) {
    while let Some(request) = requests.blocking_recv() {
        // A caller that has left does not need its result.
        match request {
            Request::Encrypt(raw, aad, reply) if !reply.is_closed() => {
                let _ = reply.send(token.encrypt(&raw, &aad));
            }
            Request::Decrypt(ciphertext, aad, reply) if !reply.is_closed() => {
                let _ = reply.send(token.decrypt(&ciphertext, &aad));
            }
            Request::Inspect(reply) if !reply.is_closed() => {
                let _ = reply.send(token.weaknesses());
            }
            _ => {}
        }
    }
}
