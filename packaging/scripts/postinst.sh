#!/bin/sh
# After an installation or upgrade: creates the service user and sets owners. Can be run again.
set -e

systemd-sysusers cloakroom.conf
systemd-tmpfiles --create cloakroom.conf

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # A running node is not restarted: the new version may need a migration first, and custodians to enter their shares.
    if systemctl --quiet is-active cloakroom.service; then
        echo "cloakroom: the node still runs the previous version. Run \`cloakroom migrate\`, then \`systemctl restart cloakroom\`."
    fi
fi
