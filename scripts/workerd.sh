#!/bin/sh
# Runs workerd so that it does not outlive the process that started it, not even when that was killed: a runtime left behind
# would keep the port and the state folder.
starter=$PPID
(
  while kill -0 "$starter" && kill -0 $$; do sleep 0.2; done
  kill -9 $$
) </dev/null >/dev/null 2>&1 3>&- &
exec "$LEASEHOLD_WORKERD" "$@"
