//! Leases that elect one node to run a background job.

use std::time::Duration;

use uuid::Uuid;

use super::{Db, Error, Statement};

const HOLD: Statement = Statement {
    name: "storage::hold_lease",
    text: "-- storage::hold_lease
        insert into lease (name, holder, until)
        values ($1, $2, now() + make_interval(secs => $3))
        on conflict (name) do update
        set holder = excluded.holder,
            until = excluded.until
        where lease.until <= now()
           or lease.holder = excluded.holder
           or lease.until > now() + 2 * make_interval(secs => $3)
        returning true",
};

/// Acquires or renews the named lease. Returns false while another holder has it. A lease of more than twice its duration
/// is of no holder: with SQL, it could otherwise stop a job forever.
pub async fn hold_lease(
    db: &Db,
    name: &str,
    holder: Uuid,
    duration: Duration,
) -> Result<bool, Error> {
    let rows = db
        .write(&HOLD, &[&name, &holder, &duration.as_secs_f64()])
        .await?;
    Ok(!rows.is_empty())
}
