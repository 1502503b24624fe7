/*
 * Rule B9 of docs/reference/protocol.md alone. LEASES begins of different cells need the buckets of two
 * shards at the same time. Each is retried as long as it is refused only because of running attempts. There
 * are no deadlines, because they would end an endless contention.
 *
 *   (default)   the first attempt asks both shards at once; retries ask in ascending order and stop at the
 *               first refusal
 *   PARALLEL    retries ask both shards at once, too
 *
 * A begin is a process, and every message is a step. Only weak fairness is assumed: a process that can always
 * continue does so at some time.
 */
#ifndef LEASES
#define LEASES 2
#endif

#define FREE 0
#define ORPHAN 100               /* left behind by a begin that a crash ended (B7) */
#define RUNNING(lease) (1 + (lease))
#define GRANTED(lease) (50 + (lease))
#define IS_GRANTED(h) ((h) >= 50 && (h) < ORPHAN)

byte hold[2];
byte winners, ended;

/* B4: a refusal only reads. */
inline ask(s, answer) {
  atomic {
    if
    :: hold[s] == FREE -> hold[s] = RUNNING(me); answer = true; printf("begin %d asks shard %d: yes\n", me, s)
    :: else -> answer = false; printf("begin %d asks shard %d: refused\n", me, s)
    fi
  }
}

/* B6: releases come before anything else. */
inline release(s, answer) {
  atomic {
    if
    :: answer -> hold[s] = FREE; answer = false; printf("begin %d releases its hold at shard %d\n", me, s)
    :: else
    fi
  }
}

/* B8: the shard that refused inquires about the hold that is there now, and drops an orphaned one. */
inline settle(s) {
  atomic {
    if
    :: hold[s] == ORPHAN -> hold[s] = FREE
    :: else -> lost = lost || IS_GRANTED(hold[s])
    fi
  }
}

proctype Begin(byte me) {
  bool yes0, yes1, no0, no1, lost;

  /* The first attempt: two messages, which arrive in any order. */
parallel:
  if
  :: true -> ask(0, yes0); ask(1, yes1)
  :: true -> ask(1, yes1); ask(0, yes0)
  fi;
  no0 = !yes0; no1 = !yes1;
  goto judge;

ascending:
  ask(0, yes0); no0 = !yes0;
  if
  :: yes0 -> ask(1, yes1); no1 = !yes1
  :: else -> no1 = false
  fi;

judge:
  if
  :: yes0 && yes1 -> goto won
  :: else -> release(0, yes0); release(1, yes1)
  fi;
  if :: no0 -> settle(0) :: else fi;
  if :: no1 -> settle(1) :: else fi;
  if
  :: lost -> goto out
  :: else
  fi;
#ifdef PARALLEL
  goto parallel;
#else
  goto ascending;
#endif

won:
progress:
  atomic { hold[0] = GRANTED(me); hold[1] = GRANTED(me); winners++ };
out:
  ended++
}

init {
  byte n;
  atomic {
    if :: hold[0] = ORPHAN :: skip fi;
    if :: hold[1] = ORPHAN :: skip fi;
    do
    :: n < LEASES -> run Begin(n); n++
    :: else -> break
    od
  };
  ended == LEASES;
  assert(winners == 1) /* exactly one begin wins */
}
