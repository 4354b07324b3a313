#!/bin/sh
# After an installation or upgrade: creates the service user and sets owners. Can be run again.
set -e

systemd-sysusers cloakroom.conf
systemd-tmpfiles --create cloakroom.conf

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # Only a node that runs is restarted: a new one needs a database and a root key first.
    systemctl try-restart cloakroom.service
fi
