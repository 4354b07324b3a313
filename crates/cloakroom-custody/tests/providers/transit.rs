//! Transit, against a server of our own that hvac, the Python client of Vault, accepts too.

use std::time::Duration;

use cloakroom_custody::Failure;
use cloakroom_platform::config;

use crate::behavior::{
    CONTEXT_BYTES, check_wrapping, load, unwrap, weaknesses, wrap, write_secret,
};
use crate::python;
use crate::relay::{Network, Relay};
use crate::transit_server::{TOKEN, TransitServer};

async fn start() -> (TransitServer, config::RootKey) {
    let server = TransitServer::start().await;
    server.change(|state| state.create_key("root"));
    let config = config::RootKey {
        provider: config::Provider::Transit,
        transit_url: Some(format!("https://{}", server.address)),
        transit_key: Some("root".into()),
        transit_token_file: Some(write_secret(server.folder.path(), "token", TOKEN)),
        transit_ca_file: Some(server.ca_file.clone()),
        deadline: Duration::from_secs(2),
        ..config::RootKey::default()
    };
    (server, config)
}

fn is_unavailable<T>(result: &Result<T, Failure>) -> bool {
    matches!(result, Err(Failure::Unavailable(_)))
}

#[tokio::test]
async fn transit_wraps_and_keys_survive_its_rotation() {
    let (server, config) = start().await;
    check_wrapping(&config).await;
    let roots = load(&config);
    let (key, wrapped) = wrap(&roots).await.unwrap();

    run_hvac(&server, "client.secrets.transit.rotate_key(name='root')").await;
    let (_, newer) = wrap(&roots).await.unwrap();
    let old = unwrap(&roots, &wrapped).await.unwrap();
    server.change(|state| state.keys.get_mut("root").unwrap().min_decryption_version = 2);
    let disallowed = unwrap(&roots, &wrapped).await.err();

    assert_eq!(old.check_value(), key.check_value());
    assert!(unwrap(&roots, &newer).await.is_ok());
    assert!(
        matches!(disallowed, Some(Failure::Disabled(_))),
        "{disallowed:?}"
    );
}

#[tokio::test]
async fn requests_carry_the_context_of_the_row() {
    use base64::Engine as _;
    let (server, config) = start().await;

    wrap(&load(&config)).await.unwrap();

    let sent = server.change(|state| state.associated_data.clone());
    let sent = base64::engine::general_purpose::STANDARD.decode(sent.as_str().unwrap());
    assert_eq!(sent.unwrap(), CONTEXT_BYTES);
}

/// The server behaves as hvac expects it of Vault, and what one wraps the other unwraps.
#[tokio::test]
async fn the_server_of_the_tests_speaks_the_protocol() {
    let (server, _) = start().await;
    run_hvac(
        &server,
        "transit = client.secrets.transit\n\
         transit.create_key(name='other')\n\
         assert transit.read_key(name='other')['data']['type'] == 'aes256-gcm96'\n\
         b64 = lambda data: base64.b64encode(data).decode()\n\
         sealed = transit.encrypt_data(name='other', plaintext=b64(b'secret'), associated_data=b64(b'row 1'))\n\
         sealed = sealed['data']['ciphertext']\n\
         assert sealed.startswith('vault:v1:')\n\
         opened = transit.decrypt_data(name='other', ciphertext=sealed, associated_data=b64(b'row 1'))\n\
         assert base64.b64decode(opened['data']['plaintext']) == b'secret'\n\
         try:\n    transit.decrypt_data(name='other', ciphertext=sealed, associated_data=b64(b'row 2'))\n\
         except hvac.exceptions.InvalidRequest as error:\n    assert 'authentication failed' in str(error)\n\
         else:\n    raise SystemExit('other associated data was accepted')\n\
         client.token = 'wrong'\n\
         try:\n    transit.read_key(name='other')\n\
         except hvac.exceptions.Forbidden:\n    pass\n\
         else:\n    raise SystemExit('a wrong token was accepted')",
    )
    .await;
}

async fn run_hvac(server: &TransitServer, script: &str) {
    let url = format!("https://{}", server.address);
    let program = format!(
        "import base64, hvac\nclient = hvac.Client(url='{url}', token='{TOKEN}', verify='{}')\n{script}\n",
        server.ca_file.display()
    );
    python::run(program).await;
}

#[tokio::test]
async fn wrong_credentials_and_a_missing_key_are_told_apart() {
    let (server, config) = start().await;
    let roots = load(&config);
    let (_, wrapped) = wrap(&roots).await.unwrap();

    write_secret(server.folder.path(), "token", "hvs.wrong");
    let denied = unwrap(&roots, &wrapped).await.err();
    write_secret(server.folder.path(), "token", TOKEN);
    let renewed = unwrap(&roots, &wrapped).await;
    server.change(|state| {
        state.keys.clear();
    });
    let deleted = unwrap(&roots, &wrapped).await.err();

    assert!(matches!(denied, Some(Failure::Denied(_))), "{denied:?}");
    assert!(renewed.is_ok());
    assert!(matches!(deleted, Some(Failure::Disabled(_))), "{deleted:?}");
    for failure in [denied, deleted].into_iter().flatten() {
        assert!(!failure.to_string().contains("hvs."), "{failure}");
    }
}

#[tokio::test]
async fn outages_of_the_server_are_unavailability() {
    let (server, config) = start().await;
    let (_, wrapped) = wrap(&load(&config)).await.unwrap();

    server.change(|state| state.is_sealed = true);
    let sealed = unwrap(&load(&config), &wrapped).await;
    server.change(|state| {
        state.is_sealed = false;
        state.is_throttling = true;
    });
    let throttled = unwrap(&load(&config), &wrapped).await;
    server.change(|state| state.is_throttling = false);

    assert!(is_unavailable(&sealed) && is_unavailable(&throttled));
    assert!(unwrap(&load(&config), &wrapped).await.is_ok());
}

#[tokio::test]
async fn a_cut_or_stalled_network_is_unavailability_and_ends() {
    let (server, config) = start().await;
    let relay = Relay::start(server.address).await;
    let config = config::RootKey {
        transit_url: Some(format!("https://{}", relay.address)),
        ..config
    };
    let roots = load(&config);
    let (key, wrapped) = wrap(&roots).await.unwrap();
    roots.start_serving();

    relay.set(Network::Cut);
    let cut = unwrap(&roots, &wrapped).await;
    relay.set(Network::Stalled);
    let stalled = unwrap(&roots, &wrapped).await;
    relay.set(Network::Up);
    let restored = unwrap(&roots, &wrapped).await;

    assert!(is_unavailable(&cut), "{:?}", cut.err());
    assert!(is_unavailable(&stalled), "{:?}", stalled.err());
    assert_eq!(restored.unwrap().check_value(), key.check_value());
}

#[tokio::test]
async fn a_server_with_another_certificate_is_not_trusted() {
    let (_server, config) = start().await;
    let other = TransitServer::start().await;
    let config = config::RootKey {
        transit_ca_file: Some(other.ca_file.clone()),
        ..config
    };

    let result = wrap(&load(&config)).await;

    assert!(is_unavailable(&result));
}

#[tokio::test]
async fn weak_settings_of_a_key_are_named() {
    let (server, config) = start().await;

    let none = weaknesses(&config).await;
    server.change(|state| state.keys.get_mut("root").unwrap().is_exportable = true);
    let exportable = weaknesses(&config).await;

    assert_eq!(none, "");
    assert!(exportable.contains("can be exported"), "{exportable}");
}
