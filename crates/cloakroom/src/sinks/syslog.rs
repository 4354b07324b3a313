//! Sends checkpoints to a syslog server: RFC 5424 messages, framed and over TLS as RFC 5425 defines it.

use std::sync::Arc;

use cloakroom_core::audit::Shipment;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::rustls::ClientConfig;

use super::{Error, connection};

/// Facility 13 (log audit), severity 5 (notice).
const PRIORITY: u8 = 13 * 8 + 5;

/// Sends checkpoints. Syslog has no acknowledgment: they count as received once TLS is closed without an error.
pub(super) async fn send(
    address: &str,
    tls: Arc<ClientConfig>,
    page: &[Shipment],
) -> Result<(), Error> {
    let (host, port) = address.rsplit_once(':').ok_or(Error::Setting)?;
    let port = port.parse().map_err(|_| Error::Setting)?;
    let mut stream = connection::connect(host, port, tls).await?;
    for shipment in page {
        stream.write_all(frame(shipment).as_bytes()).await?;
    }
    stream.flush().await?;
    stream.shutdown().await?;
    Ok(())
}

/// A frame: the length in bytes, a space, and the message. The note has lines, so it is sent as JSON.
fn frame(shipment: &Shipment) -> String {
    let message = format!(
        "<{PRIORITY}>1 - - cloakroom - audit-checkpoint - {}",
        shipment.line()
    );
    format!("{} {message}", message.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_starts_with_the_length_of_its_message() {
        let shipment = Shipment {
            number: 7,
            note: "a note \u{2014}\n".to_owned(),
        };

        let frame = frame(&shipment);

        let (length, message) = frame.split_once(' ').unwrap();
        assert_eq!(length.parse(), Ok(message.len()));
        let expected = "<109>1 - - cloakroom - audit-checkpoint - {\"number\":7,\"note\":\"a note \u{2014}\\n\"}";
        assert_eq!(message, expected);
    }
}
