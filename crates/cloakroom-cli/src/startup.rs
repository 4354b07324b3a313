//! Opens the vault of a node; waits while the node is sealed or its key provider is unavailable, and says why.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use cloakroom::admin::{self, Readiness};
use cloakroom::config::{Config, Provider};
use cloakroom::keys::{self, Failure, RootKey, RootKeys};
use cloakroom::node::{self, Node};
use cloakroom::server::Server;
use cloakroom::telemetry::Telemetry;
use cloakroom::{storage, vault};
use cloakroom_custody::shares::{Ceremony, Progress, Submission};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::key_actions;

/// The check in `/readyz` while the node waits.
const CHECK: &str = "root_key";
const FIRST_DELAY: Duration = Duration::from_millis(500);
const DELAY_MAX: Duration = Duration::from_secs(10);

/// Opens the vault as soon as its root key can be used.
pub(crate) async fn open(config: &Config, telemetry: &Telemetry) -> anyhow::Result<Node> {
    let mut waiting = Waiting::new(config, telemetry);
    let unsealed = match config.root_key.provider {
        Provider::Shares => Some(unseal(config, &mut waiting).await?),
        _ => None,
    };
    let mut delay = FIRST_DELAY;
    loop {
        // A provider is loaded anew for each attempt: the circuit breaker is for nodes that serve.
        let roots = match &unsealed {
            Some(unsealed) => unsealed.roots.clone(),
            None => {
                let root = RootKey::load(&config.root_key).map_err(keys::Error::from);
                let roots = RootKeys::new(root.context("cannot open the vault")?);
                roots.with_configured_previous(&config.root_key)?
            }
        };
        let error = match Node::open_with(config.clone(), roots).await {
            Ok(node) => {
                if let Some(unsealed) = &unsealed {
                    let recorded = key_actions::record_shares(&node, &unsealed.submissions).await;
                    recorded.context("cannot record the ceremony in the audit log")?;
                }
                waiting.finish().await;
                return Ok(node);
            }
            Err(error) => error,
        };
        let reason = reason_to_wait(&error, unsealed.is_some());
        let reason = match reason {
            Some(reason) => reason,
            None => return Err(error).context("cannot open the vault"),
        };
        waiting.report(reason).await?;
        sleep(delay).await;
        delay = DELAY_MAX.min(delay * 2);
    }
}

/// Why another attempt may succeed. An unsealed node also waits for its database, because custodians would have to submit
/// their shares again.
fn reason_to_wait(error: &node::Error, is_unsealed: bool) -> Option<String> {
    match error {
        node::Error::Vault(vault::Error::Keys(keys::Error::Provider(
            failure @ Failure::Unavailable(_),
        ))) => Some(failure.to_string()),
        node::Error::Vault(vault::Error::Storage(failure @ storage::Error::Unavailable(_)))
            if is_unsealed =>
        {
            Some(failure.to_string())
        }
        _ => None,
    }
}

/// The root key of a node that custodians have unsealed.
struct Unsealed {
    roots: RootKeys,
    submissions: Vec<Submission>,
}

/// Combines the root key from the shares that custodians submit.
async fn unseal(config: &Config, waiting: &mut Waiting<'_>) -> anyhow::Result<Unsealed> {
    let path = config.root_key.shares_socket.as_deref();
    let path = path.context("root_key.shares_socket is not set")?;
    let ceremony = Ceremony::listen(path)?;
    let sealed = |progress: Progress| {
        format!("sealed: {progress}; custodians submit theirs with `cloakroom root-key submit`")
    };
    waiting
        .report(sealed(Progress {
            received: 0,
            needed: None,
        }))
        .await?;
    let last = Mutex::new(waiting.last.clone());
    let report = |progress: Progress| {
        let reason = Some(sealed(progress));
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != reason {
            waiting
                .readiness
                .set(CHECK, reason.clone().map_or(Ok(()), Err));
            tracing::info!(reason, "the node waits for its root key");
            *last = reason;
        }
    };
    let restored = ceremony.run(report).await?;
    tracing::info!("the shares restored the root key");
    let roots = RootKeys::new(RootKey::in_process(restored.root, &config.root_key)?);
    Ok(Unsealed {
        roots: roots.with_configured_previous(&config.root_key)?,
        submissions: restored.submissions,
    })
}

/// The admin listener of a node that does not serve yet, and the last reported reason.
struct Waiting<'a> {
    config: &'a Config,
    telemetry: &'a Telemetry,
    readiness: Readiness,
    last: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    listener: JoinSet<()>,
}

impl<'a> Waiting<'a> {
    fn new(config: &'a Config, telemetry: &'a Telemetry) -> Self {
        Self {
            config,
            telemetry,
            readiness: Readiness::new(&[CHECK]),
            last: None,
            stop: None,
            listener: JoinSet::new(),
        }
    }

    /// Shows the reason in `/readyz`, and logs it if it has changed. The first one starts the admin listener.
    async fn report(&mut self, reason: String) -> anyhow::Result<()> {
        if self.last.as_ref() == Some(&reason) {
            return Ok(());
        }
        tracing::warn!(reason, "the node waits for its root key");
        self.readiness.set(CHECK, Err(reason.clone()));
        self.last = Some(reason);
        if self.stop.is_none() {
            let admin = Server::bind_admin(self.config).await?;
            let router = admin::router(self.readiness.clone(), self.telemetry.clone(), None);
            let (stop, stopped) = oneshot::channel::<()>();
            self.listener.spawn(admin.run(router, async {
                let _ = stopped.await;
            }));
            self.stop = Some(stop);
        }
        Ok(())
    }

    /// Frees the address of the admin listener for the node that serves.
    async fn finish(mut self) {
        drop(self.stop.take());
        while self.listener.join_next().await.is_some() {}
    }
}
