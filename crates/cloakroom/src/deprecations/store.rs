//! Every SQL statement about deprecated calls.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::count::Counted;
use super::list::Used;
use crate::storage::{Db, Error, statements};

statements! {
    // Calls of several tenants, each in a row that names its tenant.
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

pub(super) async fn add(db: &Db, counted: &BTreeMap<Counted, i64>) -> Result<(), Error> {
    let tenants: Vec<i32> = counted.keys().map(|it| it.tenant).collect();
    let names: Vec<&str> = counted.keys().map(|it| it.name).collect();
    let applications: Vec<Uuid> = counted.keys().map(|it| it.application).collect();
    let calls: Vec<i64> = counted.values().copied().collect();
    db.write(&ADD, &[&tenants, &names, &applications, &calls])
        .await?;
    Ok(())
}

pub(super) async fn list(db: &Db, tenant: i32) -> Result<Vec<Used>, Error> {
    let rows = db.read(&LIST, &[&tenant]).await?;
    let used = rows.iter().map(|row| Used {
        name: row.get(0),
        application: row.get(1),
        application_name: row.get(2),
        calls: row.get::<_, i64>(3).unsigned_abs(),
        first_at: row.get(4),
        last_at: row.get(5),
    });
    Ok(used.collect())
}
