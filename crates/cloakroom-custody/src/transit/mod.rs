//! The provider `transit`: a key of the Transit engine of HashiCorp Vault or OpenBao.
//!
//! The context is `associated_data`. A node needs `update` on `decrypt/KEY`; the commands that create tenants and keys
//! also need it on `encrypt/KEY`.

mod client;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::config;
use serde_json::{Value, json};

use self::client::{Answer, Client};
use crate::context::ProviderContext;
use crate::{Failure, Weakness};

pub(crate) struct Transit {
    client: Client,
    mount: String,
    key: String,
}

impl Transit {
    pub(crate) fn new(config: &config::RootKey) -> Result<Self, Failure> {
        let missing = || Failure::Configuration("root_key.transit_key is not set".to_owned());
        Ok(Self {
            client: Client::new(config)?,
            mount: config.transit_mount.trim_matches('/').to_owned(),
            key: config.transit_key.clone().ok_or_else(missing)?,
        })
    }

    pub(crate) fn root_name(&self) -> String {
        format!("{}/{}", self.mount, self.key)
    }

    pub(crate) async fn encrypt(
        &self,
        raw: Sensitive<Vec<u8>>,
        context: ProviderContext,
    ) -> Result<Vec<u8>, Failure> {
        let plaintext = Sensitive::new(STANDARD.encode(raw.expose()));
        let aad = STANDARD.encode(&context.aad);
        let body = json!({"plaintext": plaintext.expose(), "associated_data": aad});
        let answer = self.post("encrypt", &body).await?;
        let ciphertext = answer["data"]["ciphertext"].as_str();
        let ciphertext = ciphertext.filter(|text| text.starts_with("vault:v"));
        Ok(ciphertext.ok_or(UNEXPECTED)?.as_bytes().to_vec())
    }

    pub(crate) async fn decrypt(
        &self,
        ciphertext: &[u8],
        context: ProviderContext,
    ) -> Result<Sensitive<Vec<u8>>, Failure> {
        let ciphertext = std::str::from_utf8(ciphertext).map_err(|_| Failure::Integrity)?;
        let aad = STANDARD.encode(&context.aad);
        let body = json!({"ciphertext": ciphertext, "associated_data": aad});
        let answer = self.post("decrypt", &body).await?;
        let plaintext = answer["data"]["plaintext"].as_str().ok_or(UNEXPECTED)?;
        let raw = STANDARD.decode(plaintext).map_err(|_| UNEXPECTED)?;
        Ok(Sensitive::new(raw))
    }

    /// Settings of the key that let it leave the engine. Needs `read` on `keys/KEY`.
    pub(crate) async fn weaknesses(&self) -> Result<Vec<Weakness>, Failure> {
        let mut found = vec![];
        let mut add = |what: String| found.push(Weakness(what));
        if !self.client.is_encrypted() {
            add(
                "root_key.transit_url is not encrypted: anyone on the network can read every key"
                    .into(),
            );
        }
        let path = format!("/v1/{}/keys/{}", self.mount, self.key);
        let answer = self.client.send("GET", &path, None).await?;
        if answer.status != 200 {
            let name = self.root_name();
            add(format!(
                "the key {name} could not be inspected: allow `read` on it"
            ));
            return Ok(found);
        }
        let key = &answer.body["data"];
        let flags = [
            ("exportable", "can be exported"),
            ("allow_plaintext_backup", "can be backed up in clear"),
            ("deletion_allowed", "can be deleted"),
        ];
        for (flag, what) in flags {
            if key[flag].as_bool() == Some(true) {
                add(format!(
                    "the key {} {what}: set `{flag}` to false",
                    self.root_name()
                ));
            }
        }
        if key["type"].as_str() != Some("aes256-gcm96") {
            add("the type of the key is not aes256-gcm96".to_owned());
        }
        Ok(found)
    }

    async fn post(&self, operation: &str, body: &Value) -> Result<Value, Failure> {
        let path = format!("/v1/{}/{operation}/{}", self.mount, self.key);
        let text = Sensitive::new(body.to_string());
        let answer = self.client.send("POST", &path, Some(text)).await?;
        match answer.status {
            200 => Ok(answer.body),
            _ => Err(classify(&answer)),
        }
    }
}

const UNEXPECTED: Failure = Failure::Unavailable("Transit sent an unexpected response");

/// What a response means for the root key. Its messages are compared, never passed on.
fn classify(answer: &Answer) -> Failure {
    let says = |text: &str| {
        let errors = answer.body["errors"].as_array();
        let mut errors = errors.into_iter().flatten().filter_map(Value::as_str);
        errors.any(|error| error.contains(text))
    };
    match answer.status {
        403 => Failure::Denied("its policy or its token does not allow the request"),
        404 => Failure::Disabled("Transit has no such mount or key"),
        // Vault answers 400 to everything that is wrong with a key or a ciphertext.
        400 if says("key not found") => Failure::Disabled("it does not exist"),
        400 if says("disallowed by policy") => Failure::Disabled("this version of it is disabled"),
        400 => Failure::Integrity,
        429 => Failure::Unavailable("Transit throttles requests"),
        503 => Failure::Unavailable("the server is sealed or in maintenance"),
        _ => Failure::Unavailable("the server reports an error"),
    }
}
