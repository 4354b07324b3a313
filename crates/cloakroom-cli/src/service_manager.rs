//! Notifies systemd when the node is ready and when it stops (`Type=notify`, see sd_notify(3)).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable with the address of the service manager.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The node has opened its vault and its listeners.
pub(crate) fn report_ready() {
    report("READY=1");
}

/// The node completes the requests that are running.
pub(crate) fn report_stopping() {
    report("STOPPING=1");
}

fn report(state: &str) {
    let Some(address) = std::env::var_os(VARIABLE).filter(|it| !it.is_empty()) else {
        return;
    };
    if send(&address, state).is_err() {
        tracing::warn!("the service manager cannot be notified");
    }
}

fn send(address: &OsStr, state: &str) -> io::Result<()> {
    let address = match address.as_bytes() {
        // An abstract socket.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_sent_to_files_and_abstract_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("cloakroom-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let cases = [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (
                UnixDatagram::bind_addr(&abstract_address).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (socket, address) in cases {
            send(&address, "READY=1").unwrap();
            let mut buffer = [0; 64];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
        assert!(send(OsStr::new("/nowhere"), "READY=1").is_err());
    }
}
