//! Shares: a ceremony through the socket, with wrong and repeated shares.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use cloakroom_crypto::Sensitive;
use cloakroom_custody::shares::{Ceremony, Submission, split, submit};
use cloakroom_custody::{RootKey, RootKeys, create_file};
use cloakroom_platform::config;

use crate::behavior::{check_wrapping, load, unwrap, wrap};

fn line(path: &Path) -> Sensitive<String> {
    Sensitive::new(std::fs::read_to_string(path).unwrap())
}

/// Submits in another thread, because `submit` blocks.
async fn submit_file(socket: &Path, file: &Path) -> Result<String, String> {
    let (socket, line) = (socket.to_owned(), line(file));
    let submitted = tokio::task::spawn_blocking(move || submit(&socket, &line, "ada@vault1"));
    submitted.await.unwrap().map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_file_wraps_and_unwraps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("root.key");
    create_file(&file).unwrap();
    let config = config::RootKey {
        file: Some(file),
        ..config::RootKey::default()
    };
    check_wrapping(&config).await;
}

#[tokio::test]
async fn custodians_restore_a_root_key_that_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("shares.sock");
    let file = folder.path().join("root.key");
    create_file(&file).unwrap();
    let in_file = config::RootKey {
        file: Some(file.clone()),
        ..config::RootKey::default()
    };
    let (key, wrapped) = wrap(&load(&in_file)).await.unwrap();
    let parts = split(Some(&file), (2, 3), folder.path()).unwrap();
    let foreign = tempfile::tempdir().unwrap();
    let foreign_parts = split(None, (2, 3), foreign.path()).unwrap();
    let ceremony = Ceremony::listen(&socket).unwrap();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&socket).unwrap().permissions());
    let reports = std::sync::Arc::new(Mutex::new(Vec::new()));
    let seen = reports.clone();
    let mut node = tokio::task::JoinSet::new();
    node.spawn(ceremony.run(move |progress| {
        seen.lock().unwrap().push(progress.to_string());
    }));

    let first = submit_file(&socket, &parts.files[2]).await;
    let repeated = submit_file(&socket, &parts.files[2]).await;
    let other_key = submit_file(&socket, &foreign_parts.files[0]).await;
    let no_share = submit_file(&socket, &file).await;
    let second = submit_file(&socket, &parts.files[0]).await;
    let root = tokio::time::timeout(Duration::from_secs(60), node.join_next()).await;
    let restored = root.unwrap().unwrap().unwrap().unwrap();

    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(first.unwrap(), "1 of 2 shares received");
    assert!(repeated.unwrap_err().contains("received already"));
    assert!(other_key.unwrap_err().contains("another root key"));
    assert!(no_share.unwrap_err().contains("not a share"));
    assert_eq!(second.unwrap(), "the root key is complete");
    let reports = reports.lock().unwrap().clone();
    assert_eq!(
        reports[..2],
        ["no share received", "1 of 2 shares received"]
    );
    let submitted = |number| Submission {
        number,
        operator: "ada@vault1".to_owned(),
    };
    assert_eq!(restored.submissions, [submitted(3), submitted(1)]);
    let root = RootKey::in_process(restored.root, &in_file).unwrap();
    let roots = RootKeys::new(root);
    let unwrapped = unwrap(&roots, &wrapped).await.unwrap();
    assert_eq!(unwrapped.check_value(), key.check_value());
    let gone: PathBuf = socket.clone();
    assert!(!gone.exists());
}

#[test]
fn files_of_shares_are_private_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();

    let parts = split(None, (3, 5), folder.path()).unwrap();
    let before = line(&parts.files[0]);
    let again = split(None, (3, 5), folder.path());

    assert_eq!(parts.files.len(), 5);
    for file in &parts.files {
        let mode = std::fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o400);
    }
    assert!(again.is_err());
    assert_eq!(line(&parts.files[0]).expose(), before.expose());
    assert!(split(None, (1, 3), folder.path()).is_err());
}

#[tokio::test]
async fn a_socket_that_a_stopped_node_left_behind_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("shares.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());

    let first = Ceremony::listen(&socket).unwrap();
    let second = Ceremony::listen(&socket);

    // A node that listens keeps its socket.
    assert!(second.is_err());
    drop(first);
}
