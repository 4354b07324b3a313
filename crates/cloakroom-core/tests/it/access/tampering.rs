//! Keys, applications and tenants that were modified by SQL.

use cloakroom::access::{self, ApplicationKind, Permission};
use cloakroom_testkit::{TestVault, grants};
use http::StatusCode;

use super::{create_status, creator};

#[tokio::test]
async fn rows_modified_by_sql_grant_nothing() {
    let attacks = [
        "update application set grants = replace(grants, 'token:create', 'token:read')",
        "update application set grants = '{\"permissions\":[\"token:read\"],\"rules\":[]}'",
        "update application set kind = 2",
        "update application set name = 'another'",
        "update application_key set key_digest = decode(repeat('00', 32), 'hex')",
        "update application_key set expires_at = now() + interval '1 year'",
        "update application_key set key_id = gen_random_uuid()",
        "update tenant set kind = 2",
        "update tenant set settings = '{}'",
        "update tenant set row_mac = decode(repeat('00', 32), 'hex')",
    ];
    for attack in attacks {
        let vault = TestVault::start().await;
        let holder = creator(&vault).await;

        let changed = vault
            .database
            .connect()
            .await
            .execute(attack, &[])
            .await
            .unwrap();

        assert_eq!(changed, 1, "{attack}");
        let status = create_status(&vault, &holder.key).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{attack}");
    }
}

#[tokio::test]
async fn a_key_moved_to_another_application_by_sql_is_rejected() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let private = ApplicationKind::Private;
    let weak = vault
        .holder(&tenant, private, grants(&[Permission::TokenUse]))
        .await;
    let strong = vault
        .holder(&tenant, private, grants(&[Permission::TokenCreate]))
        .await;

    let database = vault.database.connect().await;
    database
        .execute(
            "update application_key set application_id = $1 where key_id = $2",
            &[&strong.application, &weak.key_id],
        )
        .await
        .unwrap();

    assert_eq!(
        create_status(&vault, &weak.key).await,
        StatusCode::UNAUTHORIZED
    );
    // The other rows of the bucket grant nothing either, until the key is back.
    assert_eq!(
        create_status(&vault, &strong.key).await,
        StatusCode::UNAUTHORIZED
    );
    database
        .execute(
            "update application_key set application_id = $1 where key_id = $2",
            &[&weak.application, &weak.key_id],
        )
        .await
        .unwrap();
    assert_eq!(
        create_status(&vault, &strong.key).await,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn examine_finds_every_row_modified_by_sql() {
    let vault = TestVault::start().await;
    creator(&vault).await;
    creator(&vault).await;
    let database = vault.database.connect().await;

    let intact = access::verify_rows(&vault.vault.db, vault.vault.keys.control())
        .await
        .unwrap();
    let attacks = [
        (
            "update application set grants = '{}' where tenant_id = 1",
            1,
        ),
        (
            "update application_key set expires_at = now() where tenant_id = 1",
            2,
        ),
        // Rows of a tenant that fails verification are not examined.
        ("update tenant set name = 'another' where tenant_id = 1", 1),
    ];

    assert_eq!((intact.rows, intact.altered), (6, vec![]));
    for (attack, altered) in attacks {
        assert_eq!(database.execute(attack, &[]).await.unwrap(), 1, "{attack}");
        let examined = access::verify_rows(&vault.vault.db, vault.vault.keys.control())
            .await
            .unwrap();
        assert_eq!(
            examined.altered.len(),
            altered,
            "{attack}: {:?}",
            examined.altered
        );
    }
}
