//! Moves a tenant to another vault: export, then import.

use cloakroom::access::Transform;
use cloakroom_testkit::{Client, TestVault, everything};
use serde_json::{Value, json};

use super::export::Source;
use super::{
    card_number, cards, count, import_lines, import_with, options, read_key, without_times,
};

/// Tokens with every attribute, and with none.
async fn populate(client: &Client) -> Vec<String> {
    let card = |index: u64| json!({"number": card_number(index), "expiration_month": 1, "expiration_year": 2041});
    let tokens = [
        json!({"id": "all attributes", "type": "token", "data": {"a": "xyz", "b": [1, 2.50, "x\"y"]}, "containers": ["/a/b/"],
            "mask": {"a": "{{ data.a | slice: 0, 1 }}"}, "metadata": {"who": "ada", "n": "1"},
            "search_indexes": ["{{ data.a }}"], "fingerprint_expression": "{{ data.a }}",
            "expires_at": "2099-01-01T00:00:00+02:00"}),
        json!({"type": "card", "data": card(1)}),
        json!({"type": "card", "data": card(1)}),
        json!({"type": "card", "data": card(2), "search_indexes": []}),
        json!({"type": "token", "data": "plain"}),
        json!({"id": "no mask", "type": "card", "data": card(3)}),
    ];
    let mut ids = Vec::new();
    for token in tokens {
        let created = client.post("/tokens", token).await;
        assert_eq!(created.status, 201, "{}", created.body);
        ids.push(created.body["id"].as_str().unwrap().to_owned());
    }
    let removed = client
        .patch("/tokens/no%20mask", json!({"mask": null}))
        .await;
    assert_eq!(removed.status, 200, "{}", removed.body);
    ids
}

async fn read_all(client: &Client, ids: &[String]) -> Vec<Value> {
    let mut tokens = Vec::new();
    for id in ids {
        let found = client
            .get(&format!("/tokens/{}", id.replace(' ', "%20")))
            .await;
        assert_eq!(found.status, 200, "{id}: {}", found.body);
        let mut token = without_times(found.body);
        // Times of the source: a moved token is created by the import.
        for name in ["modified_at", "modified_by"] {
            token.as_object_mut().unwrap().remove(name);
        }
        tokens.push(token);
    }
    tokens
}

#[tokio::test]
async fn a_moved_tenant_reads_the_same_in_the_other_vault() {
    let source = Source::start().await;
    let revealing = source
        .vault
        .client(&source.tenant, everything(Transform::Reveal))
        .await;
    let masking = source
        .vault
        .client(&source.tenant, everything(Transform::Mask))
        .await;
    let ids = populate(&revealing).await;
    import_lines(&source.vault, &source.tenant, "more", cards(1_500))
        .await
        .unwrap();
    let manifest = source.export().await;

    let destination = TestVault::start().await;
    let tenant = destination.tenant().await;
    let file = std::fs::read_to_string(source.out().join("tokens.jwe")).unwrap();
    let import = async |file: &str| {
        let mut moved = options(&format!("export {}", manifest.export));
        moved.key = Some(read_key(&source.private));
        moved.chunks = Some(manifest.chunks.clone());
        import_with(&destination, &tenant, moved, file).await
    };
    // A file that was replaced after its verification, with chunks that are encrypted to the same key.
    let chunks: Vec<&str> = file.lines().collect();
    let forged = format!("{}\n{}\n", chunks[1], chunks[0]);
    let longer = format!("{file}{}\n", chunks[0]);
    for (replaced, index) in [(forged.as_str(), 1), (chunks[0], 2), (longer.as_str(), 3)] {
        let error = import(replaced).await.unwrap_err().to_string();
        let expected = format!("JWE {index} differs from the manifest");
        assert!(error.contains(&expected), "{error}");
    }
    let (counts, report) = import(&file).await.unwrap();

    assert_eq!((counts.created, counts.rejected), (1_506, 0), "{report:?}");
    assert_eq!(manifest.tokens, 1_506);
    assert_eq!(
        count(&destination, "token").await,
        count(&source.vault, "token").await
    );
    let moved_revealing = destination
        .client(&tenant, everything(Transform::Reveal))
        .await;
    let moved_masking = destination
        .client(&tenant, everything(Transform::Mask))
        .await;
    assert_eq!(
        read_all(&moved_revealing, &ids).await,
        read_all(&revealing, &ids).await
    );
    assert_eq!(
        read_all(&moved_masking, &ids).await,
        read_all(&masking, &ids).await
    );
    let query = json!({"query": "metadata.who:ada"});
    let found = moved_revealing.post("/v2/tokens/search", query).await.body;
    assert_eq!(found["data"][0]["id"], "all attributes", "{found}");
}
