//! Sends checkpoints and entries to a syslog server: RFC 5424 messages, framed and over TLS as RFC 5425 defines it.

use std::sync::Arc;

use cloakroom_platform::outbound;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::rustls::ClientConfig;

use super::Error;

/// Facility 13 (log audit), severity 5 (notice).
const PRIORITY: u8 = 13 * 8 + 5;
/// Message ids.
pub(super) const CHECKPOINT: &str = "audit-checkpoint";
pub(super) const ENTRY: &str = "audit-entry";

/// Sends messages, each with its id. Syslog has no acknowledgment: they count as received once TLS is closed without an error.
pub(super) async fn send(
    address: &str,
    tls: Arc<ClientConfig>,
    messages: Vec<(&'static str, impl AsRef<str>)>,
) -> Result<(), Error> {
    let (host, port) = address.rsplit_once(':').ok_or(Error::Setting)?;
    let port = port.parse().map_err(|_| Error::Setting)?;
    let mut stream = outbound::connect(host, port, tls).await?;
    for (id, text) in messages {
        stream
            .write_all(frame(id, text.as_ref()).as_bytes())
            .await?;
    }
    stream.flush().await?;
    stream.shutdown().await?;
    Ok(())
}

/// A frame: the length in bytes, a space, and the message.
fn frame(id: &str, text: &str) -> String {
    let message = format!("<{PRIORITY}>1 - - cloakroom - {id} - {text}");
    format!("{} {message}", message.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_starts_with_the_length_of_its_message() {
        let frame = frame(CHECKPOINT, "{\"note\":\"a note \u{2014}\"}");

        let (length, message) = frame.split_once(' ').unwrap();
        assert_eq!(length.parse(), Ok(message.len()));
        let expected = "<109>1 - - cloakroom - audit-checkpoint - {\"note\":\"a note \u{2014}\"}";
        assert_eq!(message, expected);
    }
}
