//! SQL statements for pairs of fingerprints.

use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, statements};

statements! {
    // Sorted, so that concurrent statements with the same pairs do not deadlock. Nothing is promised to a client before
    // the token is durable, and its commit makes this one durable too.
    INSERT: "fingerprint_pairs::insert" =
        "with at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
        )
        insert into fingerprint_pair (tenant_id, fingerprint, other, mac)
        select $1, pair.fingerprint, pair.other, pair.mac
        from at_once, unnest($2::bytea[], $3::bytea[], $4::bytea[]) as pair (fingerprint, other, mac)
        order by pair.fingerprint
        on conflict do nothing";
    FIND: "fingerprint_pairs::find" =
        "select other, mac
        from fingerprint_pair
        where tenant_id = $1
          and fingerprint = $2";
    DELETE: "fingerprint_pairs::delete" =
        "with due as (
            select fingerprint
            from fingerprint_pair
            where tenant_id = $1
            order by fingerprint
            limit $2
        )
        delete from fingerprint_pair
        using due
        where fingerprint_pair.tenant_id = $1
          and fingerprint_pair.fingerprint = due.fingerprint
        returning true";
}

/// Pairs to insert: a fingerprint, the other one, and the MAC.
#[derive(Default)]
pub(super) struct NewPairs(Vec<[Fingerprint; 3]>);

impl NewPairs {
    pub(super) fn push(&mut self, pair: [Fingerprint; 3]) {
        self.0.push(pair);
    }

    fn column(&self, index: usize) -> Vec<&[u8]> {
        let column = self.0.iter();
        column.map(|pair| &pair[index].as_bytes()[..]).collect()
    }
}

pub(super) async fn insert(db: &Db, tenant: TenantId, pairs: NewPairs) -> Result<(), Error> {
    if pairs.0.is_empty() {
        return Ok(());
    }
    let (prints, others, macs) = (pairs.column(0), pairs.column(1), pairs.column(2));
    let params: Params<'_> = &[&tenant.number, &prints, &others, &macs];
    db.write(&INSERT, params).await?;
    Ok(())
}

/// Finds the other fingerprint and the MAC.
pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    fingerprint: &Fingerprint,
) -> Result<Option<(Fingerprint, Fingerprint)>, Error> {
    let bytes = &fingerprint.as_bytes()[..];
    let row = db.read_optional(&FIND, &[&tenant.number, &bytes]).await?;
    let print = |bytes: &[u8]| <[u8; 32]>::try_from(bytes).ok().map(Fingerprint::from);
    Ok(row.and_then(|row| Some((print(row.get(0))?, print(row.get(1))?))))
}

/// Deletes up to `limit` pairs; returns how many.
pub(super) async fn delete(db: &Db, tenant: TenantId, limit: i64) -> Result<usize, Error> {
    let params: Params<'_> = &[&tenant.number, &limit];
    Ok(db.write(&DELETE, params).await?.len())
}
