//! The HTTP client of exporters: one thread per signal, TLS, and the headers of the collector.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use crate::config;
use crate::outbound;
use crate::telemetry::catalog;

/// Time for one export, with the connection.
const TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::telemetry) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// The label of metrics.
    fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("telemetry.otlp_headers_file: {0}")]
    Headers(String),
    #[error("the collector: {0}")]
    Connection(#[from] outbound::Error),
    #[error("the collector does not speak HTTP/1.1")]
    Http(#[from] hyper::Error),
    #[error("the response of the collector is too long or incomplete")]
    Response,
    #[error("the collector did not respond in time")]
    Timeout,
    #[error("the exporter has ended")]
    Ended,
    #[error("the thread of the exporter cannot be started")]
    Thread(#[from] std::io::Error),
}

impl Error {
    /// A constant for the log.
    fn kind(&self) -> &'static str {
        match self {
            Self::Headers(_) => "collector_headers",
            Self::Connection(outbound::Error::Tls(_)) => "collector_tls",
            Self::Connection(_) => "collector_unreachable",
            Self::Http(_) | Self::Response => "collector_response_invalid",
            Self::Timeout => "collector_too_slow",
            Self::Ended | Self::Thread(_) => "exporter_ended",
        }
    }
}

struct Message {
    request: Request<Bytes>,
    response: oneshot::Sender<Result<Response<Bytes>, Error>>,
}

/// Sends the requests of one signal from a thread of its own, so that exporters work on any thread and never use the threads
/// of requests. The thread ends with the last clone.
#[derive(Clone, Debug)]
pub(in crate::telemetry) struct Client {
    messages: mpsc::UnboundedSender<Message>,
}

impl Client {
    pub(in crate::telemetry) fn start(
        signal: Signal,
        settings: &config::Telemetry,
    ) -> Result<Self, Error> {
        let collector = Collector {
            signal,
            headers: settings.headers().map_err(Error::Headers)?,
            tls: outbound::client_config(settings.otlp_ca_file.as_deref())?,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (messages, received) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name(format!("otlp-{}", signal.name()))
            .spawn(move || runtime.block_on(collector.run(received)))?;
        Ok(Self { messages })
    }

    /// Sends a request. The response may have any status.
    pub(in crate::telemetry) async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Error> {
        let (response, received) = oneshot::channel();
        let message = Message { request, response };
        self.messages.send(message).map_err(|_| Error::Ended)?;
        received.await.map_err(|_| Error::Ended)?
    }
}

impl HttpClient for Client {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move { Ok(self.send(request).await?) })
    }
}

/// A collector, as the thread of a client knows it.
struct Collector {
    signal: Signal,
    headers: HeaderMap,
    tls: Arc<ClientConfig>,
}

impl Collector {
    async fn run(self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let collector = Arc::new(self);
        let mut exchanges = JoinSet::new();
        let mut is_failing = false;
        loop {
            tokio::select! {
                Some(ended) = exchanges.join_next() => {
                    // An exchange does not panic; if it does, its exporter gets `Ended`.
                    let (response, outcome) = match ended {
                        Ok(ended) => ended,
                        Err(_) => continue,
                    };
                    collector.report(&outcome, &mut is_failing);
                    // The exporter may have given up.
                    let _ = oneshot::Sender::send(response, outcome);
                }
                message = messages.recv() => {
                    let Some(Message { request, response }) = message else {
                        return;
                    };
                    let collector = Arc::clone(&collector);
                    exchanges.spawn(async move {
                        let exchange = timeout(TIMEOUT, collector.exchange(request)).await;
                        (response, exchange.unwrap_or(Err(Error::Timeout)))
                    });
                }
            }
        }
    }

    /// Counts the outcome, and logs the beginning and the end of an outage.
    fn report(&self, outcome: &Result<Response<Bytes>, Error>, is_failing: &mut bool) {
        let problem = match outcome {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(("collector_rejected", Some(response.status().as_u16()))),
            Err(error) => Some((error.kind(), None)),
        };
        let label = if problem.is_none() { "sent" } else { "failed" };
        let exports = catalog::OTLP_EXPORTS.with([self.signal.name(), label]);
        exports.increment(1);
        let was_failing = std::mem::replace(is_failing, problem.is_some());
        match (problem, was_failing) {
            (Some((kind, status)), false) => tracing::warn!(
                job = self.signal.name(),
                error.kind = kind,
                status,
                "the collector does not accept exports; they are dropped until it does"
            ),
            (None, true) => {
                tracing::info!(
                    job = self.signal.name(),
                    "the collector accepts exports again"
                );
            }
            _ => {}
        }
    }

    async fn exchange(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let url = std::mem::take(request.uri_mut());
        let stream = outbound::connect_to(&url, Arc::clone(&self.tls)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        self.address(&mut request, &url)?;
        let exchange = async {
            let response = sender.send_request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
            let body = body.map_err(|_| Error::Response)?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        tokio::pin!(exchange);
        tokio::select! {
            biased;
            done = &mut exchange => done,
            _ended = connection => exchange.await,
        }
    }

    /// Sets target, host and the headers of the collector.
    fn address(&self, request: &mut Request<Bytes>, url: &Uri) -> Result<(), Error> {
        let authority = url.authority().ok_or(outbound::Error::Address)?.as_str();
        let target = url.path_and_query().map_or("/", |target| target.as_str());
        *request.uri_mut() = target.parse().map_err(|_| outbound::Error::Address)?;
        let host = HeaderValue::from_str(authority).map_err(|_| outbound::Error::Address)?;
        request.headers_mut().insert(header::HOST, host);
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::telemetry::recorder;
    use crate::telemetry::tests::logged;

    #[test]
    fn an_outage_is_logged_when_it_begins_and_when_it_ends() {
        let collector = Collector {
            signal: Signal::Metrics,
            headers: HeaderMap::new(),
            tls: outbound::client_config(None).unwrap(),
        };
        let respond = |status: u16| {
            let response = Response::builder().status(status);
            Ok(response.body(Bytes::new()).unwrap())
        };
        let recorder = recorder().unwrap().build_recorder();

        let (lines, ()) = logged(&Config::default(), None, |_| {
            metrics::with_local_recorder(&recorder, || {
                let mut is_failing = false;
                let outcomes = [
                    respond(200),
                    respond(401),
                    respond(401),
                    Err(Error::Timeout),
                    respond(200),
                    respond(200),
                ];
                for outcome in &outcomes {
                    collector.report(outcome, &mut is_failing);
                }
            });
        });

        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("\"error.kind\":\"collector_rejected\""));
        assert!(lines[0].contains("\"status\":401"), "{lines:?}");
        assert!(lines[1].contains("accepts exports again"), "{lines:?}");
        let text = recorder.handle().render();
        for (outcome, count) in [("sent", 3), ("failed", 3)] {
            let labels = format!("{{signal=\"metrics\",outcome=\"{outcome}\"}} {count}");
            assert!(text.contains(&labels), "{text}");
        }
    }
}
