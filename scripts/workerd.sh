#!/bin/sh
# Runs workerd so that it does not outlive the process that started it, not even when that was killed: a runtime left behind
# would keep the port and the state folder.
if setpriv --pdeathsig KILL true 2>/dev/null; then
  exec setpriv --pdeathsig KILL "$LEASEHOLD_WORKERD" "$@"
fi
# Where the kernel does not do it, somebody has to look.
starter=$PPID
(
  while kill -0 "$starter" && kill -0 $$; do sleep 0.1; done
  kill -9 $$
) </dev/null >/dev/null 2>&1 3>&- &
exec "$LEASEHOLD_WORKERD" "$@"
