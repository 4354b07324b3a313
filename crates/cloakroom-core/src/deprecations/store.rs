//! SQL statements of deprecated calls.

use std::collections::BTreeMap;

use cloakroom_platform::storage::{Db, Error, statements};
use uuid::Uuid;

use super::count::CounterKey;
use super::list::FeatureUsage;

statements! {
    // Each row names its tenant; one insert may have calls of several tenants.
    ADD: "deprecations::add" =
        "insert into deprecated_call
            (tenant_id, name, application_id, calls, first_at, last_at)
        select tenant_id, name, application_id, calls, now(), now()
        from unnest($1::integer[], $2::text[], $3::uuid[], $4::bigint[])
            as counted (tenant_id, name, application_id, calls)
        on conflict (tenant_id, name, application_id) do update
        set calls = deprecated_call.calls + excluded.calls,
            last_at = now()";
    LIST: "deprecations::list" =
        "select called.name, called.application_id, application.name, called.calls,
                called.first_at, called.last_at
        from deprecated_call called
        left join application
          on application.tenant_id = called.tenant_id
         and application.application_id = called.application_id
        where called.tenant_id = $1
        order by called.name, called.calls desc, called.application_id";
}

pub(super) async fn add(db: &Db, counts: &BTreeMap<CounterKey, i64>) -> Result<(), Error> {
    let tenants: Vec<i32> = counts.keys().map(|it| it.tenant).collect();
    let names: Vec<&str> = counts.keys().map(|it| it.name).collect();
    let applications: Vec<Uuid> = counts.keys().map(|it| it.application).collect();
    let calls: Vec<i64> = counts.values().copied().collect();
    db.write(&ADD, &[&tenants, &names, &applications, &calls])
        .await?;
    Ok(())
}

pub(super) async fn list(db: &Db, tenant: i32) -> Result<Vec<FeatureUsage>, Error> {
    let rows = db.read(&LIST, &[&tenant]).await?;
    let used = rows.iter().map(|row| FeatureUsage {
        name: row.get(0),
        application: row.get(1),
        application_name: row.get(2),
        calls: row.get::<_, i64>(3).unsigned_abs(),
        first_at: row.get(4),
        last_at: row.get(5),
    });
    Ok(used.collect())
}
