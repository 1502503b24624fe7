/*
 * The protocol of docs/reference/protocol.md with two cells that have one lease each, and two shards that
 * have one bucket each. Both leases need both buckets. docs/internals/model.md lists the abstractions.
 * main.ts runs this file with the bounds and switches of runs.ts.
 *
 * One step of the model is one message, handled in one synchronous transaction. check() runs after each step.
 * The words are those of the protocol:
 *
 *   cell c       0 or 1. A cell has one lease, which is called the lease of cell c.
 *   attempt a    1, 2 or 3, counted over all instances of a ledger, so no two are equal (B3).
 *   execution    (c, a, t, s): shard s carried out the prepare of attempt a. t is its epoch: 0 for the first
 *                time, 1 for the duplicate.
 *
 * Messages. A message that was sent may arrive late, repeatedly, out of order or never. Its bit stays set,
 * and delivering it is a step that is possible at any time. A prepare arrives at most twice. A shard's answer
 * is the bit in `yes`.
 *
 * Faults. A ledger's instance may crash: its memory is lost and its rows stay. Or it may be replaced: the old
 * instance keeps running, starts and ends attempts, and answers inquiries from the rows it last saw, but
 * cannot write. A crash of a shard is the same as a lost answer, because a shard keeps nothing in memory.
 *
 * Modes:
 *   (default)    safety: properties that must hold after every step
 *   DESTROY      safety: lease 0 destroys two claims of cell 0, lease 1 creates them for cell 1
 *   LOOKUP       safety: also a reader that looks up the bucket of shard 0
 *   PROGRESS     progress: each message arrives once, LOSSES of them never. When no step is left, all work is
 *                done.
 *
 * REDUCED makes larger bounds possible and removes no behaviour. Of the switches it may only be combined with
 * OWNED_IS_FREE. Messages that can no longer have an effect are forgotten. Except in PROGRESS, every inquiry
 * that would be answered "gone" now counts as sent and answered, with the answer in transit. That is the
 * worst case, because inquiries may happen at any time and answers may be late. States that differ only in
 * which inquiries were sent become one.
 */

/* ---- bounds ---- */
#ifndef NA0
#define NA0 2            /* attempts of lease 0 */
#endif
#ifndef NA1
#define NA1 1            /* attempts of lease 1 */
#endif
#ifndef DUP
#define DUP 0            /* bit E(c,a): prepares of that attempt may arrive twice */
#endif
#ifndef CRASHES
#define CRASHES 1        /* per ledger */
#endif
#ifndef REPLACED
#define REPLACED 3       /* bit c: the ledger's instance may be replaced, once */
#endif
#ifndef FAULTY
#define FAULTY 3         /* bit c: the ledger's instance may crash */
#endif
#ifndef LOSSES
#define LOSSES 1         /* PROGRESS: how many repeated messages are lost */
#endif

#define NA(c) ((c) == 0 -> NA0 : NA1)
#define BIT(n) (1 << (n))

/* ---- durable rows ---- */
#define NONE 0
#define GRANTED 1
#define COMMITTED 2      /* not confirmed by every shard yet */
#define ROLLED_BACK 3    /* likewise */
#define COMMITTED_DONE 4 /* confirmed everywhere: epochs deleted, inquiries are answered "gone" */
#define ROLLED_BACK_DONE 5 /* likewise; also a fence, which has no holds */
byte row[2];             /* the lease's row in its ledger */
byte ratt[2];            /* the attempt it was granted to */
byte repo[2];            /* the epochs it was granted with: bit s is t at shard s */
byte hold[2];            /* shard s: the execution that holds the bucket, see HOLD; 0: free */
byte clm[2];             /* shard s: the cell that owns the bucket + 1; 0: nobody */

/* ---- memory of a ledger's current instance ---- */
byte cur[2];             /* the running attempt (B7: nowhere else); 0: none */
byte ackd[2];            /* bit s: shard s confirmed the decision */

/* ---- a replaced instance ---- */
bool zon[2];             /* it exists */
byte zcur[2];            /* its running attempt */
byte znew[2];            /* bit a: attempt a has a newer incarnation than it (B8) */
byte zrow[2], zratt[2], zrepo[2]; /* the row as it last saw it */

/* ---- messages in transit; bit X(t,s) is about the execution with epoch t at shard s ---- */
byte prep[6];            /* prepares: the message, and its duplicate */
byte yes[6];             /* answers: granted */
byte drop[6];            /* releases, rollbacks and the verdicts "rolled_back" and "gone" */
byte comm[6];            /* commits and the verdict "committed" */

/* ---- bookkeeping of the model itself ---- */
byte na[2];              /* attempts started */
byte crashes[2];
byte has[2];             /* bit s: the cell may believe that it owns the bucket */
byte appl[2];            /* bit s: the commit was applied at shard s */
bool reported[2];            /* a caller may know that the lease is rolled back */
#ifdef PROGRESS
byte ackm[2];            /* bit s: the confirmation of shard s is in transit */
bool done[2];            /* the cell does not try its begin again */
byte replaceable = REPLACED;
byte losses = LOSSES;
#endif
#ifdef LOOKUP
byte lkat;               /* the reader: 0 idle, 1 asked the ledger, 2 has its answer */
byte lke;                /* the hold it asked about */
byte lkans;              /* the verdict */
byte lksaw;              /* bit c: cell c owned the bucket at some moment since the start */
bool lkfree;             /* no cell owned it at some moment since the start */
bool lkz;                /* the asked instance was replaced in the meantime */
bool lkknown;            /* R2_REMEMBERS */
#endif
/* only with switches: written but not flushed; an attempt that has ended; the label of an attempt */
byte pend[2], late[2];
#ifdef B3_REUSED
byte lab[6], count[2], zcount[2];
#endif

#define E(c,a) ((c) * 3 + (a) - 1)
#define X(t,s) (1 << (2 * (t) + (s)))
#define HOLD(c,a,t) (E(c,a) + 1 + 8 * (t))
#define E_OF(h) (((h) & 7) - 1)
#define CELL_OF(h) (E_OF(h) / 3)
#define ALL_OF(c,a) ((DUP >> E(c,a)) & 1 -> 15 : 3)

/*
 * ======================= identity =======================
 * Holds, messages and rows belong together if cell, lease, attempt and epoch are equal (B3, B4).
 */
#if defined(B3_NO_ATTEMPT)
#define SAME(h,c,a,t) ((h) && CELL_OF(h) == (c))
#define IS_ROW(c,a,t,s) (ratt[c] != 0)
#define IS_RUNNING(c,a) (cur[c] != 0)
#elif defined(B3_REUSED)
#define SAME(h,c,a,t) ((h) && CELL_OF(h) == (c) && lab[E_OF(h)] == lab[E(c,a)])
#define IS_ROW(c,a,t,s) (ratt[c] && lab[E(c,ratt[c])] == lab[E(c,a)])
#define IS_RUNNING(c,a) (cur[c] && lab[E(c,cur[c])] == lab[E(c,a)])
#elif defined(NO_CELL)
#define SAME(h,c,a,t) ((h) && E_OF(h) % 3 == (a) - 1)
#elif defined(B4_NO_EPOCH)
#define SAME(h,c,a,t) ((h) && E_OF(h) == E(c,a))
#define IS_ROW(c,a,t,s) (ratt[c] == (a))
#else
#define SAME(h,c,a,t) ((h) == HOLD(c,a,t))
#endif
#ifndef IS_ROW
#define IS_ROW(c,a,t,s) (ratt[c] == (a) && ((repo[c] >> (s)) & 1) == (t))
#endif
#ifndef IS_RUNNING
#define IS_RUNNING(c,a) (cur[c] == (a))
#endif
#define OWNED_BY(s,c) (hold[s] && CELL_OF(hold[s]) == (c))
/* whether the execution that cell c's row names still holds at shard s */
#define ROW_HOLDS(c,s) SAME(hold[s], c, ratt[c], (repo[c] >> (s)) & 1)

#ifdef DESTROY
#define IS_DESTROY(c) ((c) == 0)
#else
#define IS_DESTROY(c) 0
#endif
#ifdef OWNED_IS_FREE
#define CLEAR(c,s) (!hold[s])
#else
#define CLEAR(c,s) (!hold[s] && (IS_DESTROY(c) -> clm[s] == (c) + 1 : !clm[s]))
#endif

/*
 * ======================= properties =======================
 * Each has a name and a number. The verifier prints the expression that failed, which contains the number.
 */
#define MUST(name, condition) assert((condition) || name == 0)
#define two_owners              1 /* no two cells believe that they own a bucket */
#define grant_dropped           2 /* a granted lease has all of its holds */
#define half_applied            3 /* a committed lease is held or applied on each shard */
#define broken_promise          4 /* a bucket that was granted to a cell stays held or claimed for it */
#define claim_from_nothing      5 /* a claim belongs to a cell whose lease created it */
#define granted_after_rollback  6 /* no grant after an acknowledged rollback (C7) */
#define wrongly_applied         7 /* a shard applies only the granted execution of a committed lease, once */
#define untrue_lookup           8 /* a lookup's answer was true at some moment during it (R2) */
#define endless_begin           9 /* in the end: no begin is running */
#define orphan_hold            10 /* in the end: no hold is left, because every lease is decided */
#define undone_decision        11 /* in the end: every decision is applied everywhere */

#define GRANTED_HOLDS(c) (row[c] != GRANTED || pend[c] || (ROW_HOLDS(c,0) && ROW_HOLDS(c,1)))
#define COMMITTED_HOLDS(c,s) (row[c] != COMMITTED || (appl[c] & BIT(s)) || ROW_HOLDS(c,s))
#define BELIEF_IS_TRUE(c,s) (!(has[c] & BIT(s)) || clm[s] == (c) + 1 || pend[c] > GRANTED || \
  (!IS_DESTROY(c) && (row[c] == GRANTED || row[c] == COMMITTED) && ROW_HOLDS(c,s)))
#define CLAIM_IS_WANTED(c,s) (clm[s] != (c) + 1 || (has[c] & BIT(s)) || pend[c] || \
  (IS_DESTROY(c) && row[c] == COMMITTED && !(appl[c] & BIT(s))))

inline check() {
  MUST(two_owners, !(has[0] & has[1]));
  MUST(grant_dropped, GRANTED_HOLDS(0) && GRANTED_HOLDS(1));
  MUST(half_applied, COMMITTED_HOLDS(0,0) && COMMITTED_HOLDS(0,1) && COMMITTED_HOLDS(1,0) &&
    COMMITTED_HOLDS(1,1));
  MUST(broken_promise, BELIEF_IS_TRUE(0,0) && BELIEF_IS_TRUE(0,1) && BELIEF_IS_TRUE(1,0) &&
    BELIEF_IS_TRUE(1,1));
  MUST(claim_from_nothing, CLAIM_IS_WANTED(0,0) && CLAIM_IS_WANTED(0,1) && CLAIM_IS_WANTED(1,0) &&
    CLAIM_IS_WANTED(1,1))
}

/*
 * ======================= inquiry (B8) =======================
 * The verdict about one execution, from the row and the running attempt of this turn. "rolled_back" and
 * "gone" both drop its hold.
 */
#define ROW(c) (pend[c] -> pend[c] : row[c])
#if defined(B8_ROWS_ONLY)
#define NOT_RUNNING(c,a) 1
#elif defined(B7_NO_PRESUMPTION)
#define NOT_RUNNING(c,a) 0
#else
#define NOT_RUNNING(c,a) (!IS_RUNNING(c,a))
#endif
#ifdef B8_BY_LEASE
#define RESTS_ON(c,a,t,s) 1
#else
#define RESTS_ON(c,a,t,s) IS_ROW(c,a,t,s)
#endif
#ifdef B8_GONE_TOO_EARLY
#define GONE_COMMITTED(c,a,t,s) 1
#else
#define GONE_COMMITTED(c,a,t,s) (!RESTS_ON(c,a,t,s))
#endif
#define GONE(c,a,t,s) ( \
  ROW(c) == NONE -> NOT_RUNNING(c,a) : ( \
  ROW(c) == GRANTED -> !RESTS_ON(c,a,t,s) : ( \
  ROW(c) == COMMITTED -> GONE_COMMITTED(c,a,t,s) : 1)))
#define IS_COMMITTED(c,a,t,s) (ROW(c) == COMMITTED && RESTS_ON(c,a,t,s))
/* The verdict of a replaced instance, from what it last saw. It does not answer about newer incarnations. */
#ifdef B8_NOT_SILENT
#define SPEAKS(c,a) zon[c]
#else
#define SPEAKS(c,a) (zon[c] && !(znew[c] & BIT(a)))
#endif
#define Z_RESTS_ON(c,a,t,s) (zratt[c] == (a) && ((zrepo[c] >> (s)) & 1) == (t))
#define Z_GONE(c,a,t,s) (zrow[c] == NONE -> \
  zcur[c] != (a) : ((zrow[c] != GRANTED && zrow[c] != COMMITTED) || !Z_RESTS_ON(c,a,t,s)))

/*
 * ======================= fewer states, same behaviour =======================
 * REDUCED forgets messages that can no longer have an effect: messages about an execution that has neither a
 * hold nor a pending prepare (an execution holds once), unless a confirmation is awaited, and answers to an
 * attempt that has ended.
 */
#ifdef REDUCED
#define LIVE(c,a) (prep[E(c,a)] \
  | (hold[0] == HOLD(c,a,0) -> X(0,0) : 0) | (hold[1] == HOLD(c,a,0) -> X(0,1) : 0) \
  | (hold[0] == HOLD(c,a,1) -> X(1,0) : 0) | (hold[1] == HOLD(c,a,1) -> X(1,1) : 0))
#ifdef PROGRESS
#define AWAITED(c,a) (ratt[c] == (a) -> X(repo[c] & 1, 0) | X(repo[c] >> 1, 1) : 0)
#define ANSWERS(c,a) 0
#else
#define AWAITED(c,a) 0
#define ANSWER(c,a,t,s) (GONE(c,a,t,s) || (SPEAKS(c,a) && Z_GONE(c,a,t,s)) -> X(t,s) : 0)
#define ANSWERS(c,a) (ANSWER(c,a,0,0) | ANSWER(c,a,0,1) | ANSWER(c,a,1,0) | ANSWER(c,a,1,1))
#endif
#define FORGET(c,a) \
  if \
  :: na[c] >= a -> \
     yes[E(c,a)] = (cur[c] == a -> yes[E(c,a)] : 0); \
     drop[E(c,a)] = (drop[E(c,a)] | ANSWERS(c,a)) & (LIVE(c,a) | AWAITED(c,a)); \
     comm[E(c,a)] = comm[E(c,a)] & (LIVE(c,a) | AWAITED(c,a)) \
  :: else \
  fi;
inline forget() { FORGET(0,1) FORGET(0,2) FORGET(0,3) FORGET(1,1) FORGET(1,2) FORGET(1,3) skip }
#else
inline forget() { skip }
#endif

/* ======================================= parts of steps ======================================= */
inline see() {                                   /* what a reader could have seen since its start */
#ifdef LOOKUP
  if
  :: lkat -> lksaw = lksaw | (has[0] & 1) | ((has[1] & 1) << 1);
    lkfree = lkfree || (!(has[0] & 1) && !(has[1] & 1))
  :: else
  fi
#else
  skip
#endif
}

inline own(c, buckets) { has[c] = buckets; see() }

inline drop_hold(s) {
  hold[s] = 0;
#ifdef LOOKUP
  if :: s == 0 -> lkknown = 0 :: else fi
#endif
}

inline name_attempt(c, replaced) {               /* B3_REUSED: every instance counts from 1 */
#ifdef B3_REUSED
  if
  :: replaced -> zcount[c]++; lab[E(c,na[c])] = zcount[c]
  :: else -> count[c]++; lab[E(c,na[c])] = count[c]
  fi
#else
  skip
#endif
}

inline lose_memory(c) {
  cur[c] = 0; ackd[c] = 0; pend[c] = 0; late[c] = 0;
#ifdef B3_REUSED
  count[c] = 0;
#endif
#ifdef PROGRESS
  ackm[c] = 0;
#endif
}

inline write_grant(c, a, t0, t1) {               /* B5: leaving `running` and writing the row is one turn */
  MUST(granted_after_rollback, !reported[c]);
  row[c] = GRANTED; ratt[c] = a; repo[c] = (t0) + 2 * (t1);
  if :: IS_DESTROY(c) :: else -> own(c, 3) fi
}

inline write_decision(c, outcome) {              /* C1 */
  row[c] = outcome;
  if
  :: outcome == COMMITTED && IS_DESTROY(c) -> own(c, 0)
  :: outcome == ROLLED_BACK -> reported[c] = 1; if :: IS_DESTROY(c) :: else -> own(c, 0) fi
  :: else
  fi
}

inline send_decision(c, outcome) {               /* the row's epochs name one execution per shard (C2) */
  if
  :: outcome == COMMITTED -> comm[E(c,ratt[c])] = comm[E(c,ratt[c])] | X(repo[c] & 1, 0) | X(repo[c] >> 1, 1)
  :: else -> drop[E(c,ratt[c])] = drop[E(c,ratt[c])] | X(repo[c] & 1, 0) | X(repo[c] >> 1, 1)
  fi
}

inline release(c, a) { drop[E(c,a)] = ALL_OF(c,a) } /* B6: all holds of the attempt, with any epoch */

inline apply(s) {                                /* the commit of the hold of shard s */
  MUST(wrongly_applied, (row[CELL_OF(hold[s])] == COMMITTED || pend[CELL_OF(hold[s])] == COMMITTED) &&
    ROW_HOLDS(CELL_OF(hold[s]), s) && !(appl[CELL_OF(hold[s])] & BIT(s)));
  appl[CELL_OF(hold[s])] = appl[CELL_OF(hold[s])] | BIT(s);
  clm[s] = (IS_DESTROY(CELL_OF(hold[s])) -> 0 : CELL_OF(hold[s]) + 1);
  drop_hold(s)
}

/* ======================================= the ledger ======================================= */
#ifdef PROGRESS
#define STILL_TRIES(c) (!done[c])
#else
#define STILL_TRIES(c) 1
#endif

/* B2, B3, B7: no row and no running attempt: the first call, a repeated one, or its next attempt (B9) */
inline begin(c) {
  d_step {
    row[c] == NONE && !cur[c] && !pend[c] && !late[c] && na[c] < NA(c) && STILL_TRIES(c) ->
    na[c]++; cur[c] = na[c]; name_attempt(c, 0);
    prep[E(c,na[c])] = ALL_OF(c,na[c]);
    if :: zon[c] -> znew[c] = znew[c] | BIT(na[c]) :: else fi;
    printf("cell %d: begin: attempt %d starts, prepares leave\n", c, na[c])
  }
}

#ifdef M2_UNKNOWN_IS_YES
#define SAID_YES(c,a,t,s) ((yes[E(c,a)] & X(t,s)) || ((s) == 1 && (t) == 0))
#else
#define SAID_YES(c,a,t,s) (yes[E(c,a)] & X(t,s))
#endif
#ifdef C7_BEGIN_GOES_ON
#define MAY_GRANT(c) (row[c] == NONE || row[c] == ROLLED_BACK_DONE)
#else
#define MAY_GRANT(c) (row[c] == NONE)
#endif
#define ALL_SAID_YES(c,a,t0,t1) ((a) && MAY_GRANT(c) && SAID_YES(c,a,t0,0) && SAID_YES(c,a,t1,1))

/* B5: all shards have granted. */
inline grant(c, t0, t1) {
  d_step {
    ALL_SAID_YES(c, cur[c], t0, t1) ->
#ifdef B5_NOT_FLUSHED
    pend[c] = GRANTED; ratt[c] = cur[c]; repo[c] = (t0) + 2 * (t1); own(c, 3);
    printf("cell %d: the cell is told GRANTED, the row is not flushed\n", c);
    cur[c] = 0;
#elif defined(B5_TWO_TURNS)
    late[c] = cur[c];
    printf("cell %d: attempt %d leaves running, its row is not written yet\n", c, cur[c]);
    cur[c] = 0;
#else
    write_grant(c, cur[c], t0, t1);
    printf("cell %d: row GRANTED by attempt %d, epochs %d %d\n", c, cur[c], t0, t1);
    cur[c] = 0;
#endif
  }
}

/* B5: the write is durable, but the instance sees it fail. It ends, and sends and answers nothing more. */
inline grant_ambiguously(c, t0, t1) {
#ifdef B5_NOT_HALTED
  d_step {
    ALL_SAID_YES(c, cur[c], t0, t1) && !zon[c] ->
    zon[c] = 1; zcur[c] = cur[c]; zrow[c] = NONE;
    write_grant(c, cur[c], t0, t1);
    printf("cell %d: row GRANTED by attempt %d is durable, its write seemed to fail\n", c, cur[c]);
    lose_memory(c)
  }
#else
  d_step {
    crashes[c] < CRASHES && (FAULTY & BIT(c)) && ALL_SAID_YES(c, cur[c], t0, t1) ->
    crashes[c]++;
    write_grant(c, cur[c], t0, t1);
    printf("cell %d: row GRANTED by attempt %d is durable, its write seemed to fail, it ends\n", c, cur[c]);
    lose_memory(c)
  }
#endif
}

#ifdef B5_NOT_FLUSHED
inline flush_grant(c) { d_step { pend[c] == GRANTED -> row[c] = GRANTED; pend[c] = 0;
  printf("cell %d: row GRANTED is flushed\n", c) } }
#endif
#ifdef B5_TWO_TURNS
inline grant_late(c) {
  d_step { late[c] && row[c] == NONE -> write_grant(c, late[c], 0, 0);
    printf("cell %d: row GRANTED by attempt %d\n", c, late[c]); late[c] = 0 }
}
#endif
#ifdef B6_LATE_GRANT
inline grant_late(c) {
  d_step {
    !cur[c] && ALL_SAID_YES(c, late[c], 0, 0) ->
    write_grant(c, late[c], 0, 0);
    printf("cell %d: row GRANTED by attempt %d after it was over\n", c, late[c]); late[c] = 0
  }
}
#endif

/* B6: the attempt was refused, got no answer or reached its deadline. Releases may overtake prepares. */
inline end_attempt(c) {
  d_step {
    cur[c] ->
    release(c, cur[c]);
    printf("cell %d: attempt %d is over, releases leave\n", c, cur[c]);
#ifdef B6_LATE_GRANT
    late[c] = cur[c];
#endif
    cur[c] = 0
  }
}

/* C1, C2: first the row, then the messages. */
inline decide(c, outcome) {
  d_step {
    row[c] == GRANTED && !pend[c] ->
    if
    :: outcome == COMMITTED -> printf("cell %d: the row becomes COMMITTED\n", c)
    :: else -> printf("cell %d: the row becomes ROLLED_BACK\n", c)
    fi;
#if defined(C2_NOT_FLUSHED)
    pend[c] = outcome; send_decision(c, outcome);
    printf("cell %d: decisions leave, the row is not flushed\n", c);
#elif defined(C2_READ_UNFLUSHED)
    pend[c] = outcome;
    printf("cell %d: the row is not flushed\n", c);
#else
    write_decision(c, outcome); send_decision(c, outcome);
    printf("cell %d: the row is durable, decisions leave\n", c);
#endif
  }
}
#if defined(C2_NOT_FLUSHED) || defined(C2_READ_UNFLUSHED)
inline flush_decision(c, outcome) {
  d_step { pend[c] == outcome -> pend[c] = 0; write_decision(c, outcome); send_decision(c, outcome);
    printf("cell %d: the row is flushed\n", c) }
}
#endif
#ifdef C1_SECOND_DECISION
inline decide_again(c) {
  d_step {
    row[c] == COMMITTED ->
    write_decision(c, ROLLED_BACK); send_decision(c, ROLLED_BACK);
    printf("cell %d: COMMITTED is overwritten by ROLLED_BACK\n", c)
  }
}
#endif

/* C7: rollback of a lease without a row, or with a running begin. The begin ends and releases its holds. */
inline fence(c) {
  d_step {
    row[c] == NONE && !pend[c] && !late[c] && NA(c) && STILL_TRIES(c) ->
    reported[c] = 1;
#ifndef C7_NO_FENCE
    row[c] = ROLLED_BACK_DONE; ratt[c] = 0; repo[c] = 0;
#endif
    printf("cell %d: rollback without a row (running attempt: %d): answered ROLLED_BACK\n", c, cur[c]);
#ifndef C7_BEGIN_GOES_ON
    if :: cur[c] -> release(c, cur[c]); cur[c] = 0 :: else fi;
#endif
#if defined(PROGRESS)
    done[c] = 1;
#endif
  }
}

/*
 * C3: a shard's confirmation arrives. Without PROGRESS that is possible whenever the shard has nothing left
 * to apply.
 */
#ifdef PROGRESS
inline confirm(c, s) {
  d_step { ackm[c] & BIT(s) -> ackm[c] = ackm[c] & ~BIT(s); ackd[c] = ackd[c] | BIT(s);
    printf("cell %d: shard %d has confirmed\n", c, s) }
}
inline lose_confirmation(c, s) {
  d_step { (ackm[c] & BIT(s)) && losses -> losses--; ackm[c] = ackm[c] & ~BIT(s);
    printf("cell %d: the confirmation of shard %d is lost\n", c, s) }
}
#else
inline confirm(c, s) {
  d_step {
    (row[c] == COMMITTED || row[c] == ROLLED_BACK) && !(ackd[c] & BIT(s)) && !ROW_HOLDS(c,s) ->
    ackd[c] = ackd[c] | BIT(s); printf("cell %d: shard %d has confirmed\n", c, s)
  }
}
#endif

/* C3: the alarm repeats decisions without a confirmation. */
inline repeat(c, s) {
#ifdef PROGRESS
  d_step {
    (row[c] == COMMITTED || row[c] == ROLLED_BACK) && !((ackd[c] | ackm[c]) & BIT(s)) &&
      !((comm[E(c,ratt[c])] | drop[E(c,ratt[c])]) & X((repo[c] >> s) & 1, s)) ->
    if
    :: row[c] == COMMITTED -> comm[E(c,ratt[c])] = comm[E(c,ratt[c])] | X((repo[c] >> s) & 1, s)
    :: else -> drop[E(c,ratt[c])] = drop[E(c,ratt[c])] | X((repo[c] >> s) & 1, s)
    fi;
    printf("cell %d: the alarm repeats the decision for shard %d\n", c, s)
  }
#else
  false
#endif
}

/* S2: applied everywhere, so its epochs are deleted */
inline finish(c) {
  d_step {
    (row[c] == COMMITTED || row[c] == ROLLED_BACK) && ackd[c] == 3 ->
    MUST(half_applied, row[c] == ROLLED_BACK || appl[c] == 3);
    row[c] = row[c] + 2; ratt[c] = 0; repo[c] = 0; ackd[c] = 0; appl[c] = 0;
    printf("cell %d: the decision is applied everywhere\n", c)
  }
}

/* S1: the outcome is pruned, and its UUID may be used again */
#ifdef S1_TOO_EARLY
#define MAY_FORGET(c) (row[c] >= COMMITTED)
#else
#define MAY_FORGET(c) (row[c] >= COMMITTED_DONE)
#endif
inline prune(c) {
  d_step {
    MAY_FORGET(c) ->
    row[c] = NONE; ratt[c] = 0; repo[c] = 0; ackd[c] = 0; appl[c] = 0; reported[c] = 0;
    printf("cell %d: the outcome is forgotten\n", c)
  }
}

inline crash(c) {
  d_step {
    crashes[c] < CRASHES && (FAULTY & BIT(c)) && (cur[c] || ackd[c] || pend[c] || late[c]) ->
    crashes[c]++; lose_memory(c); printf("cell %d: the ledger crashes and starts again\n", c)
  }
}

#ifdef PROGRESS
#define MAY_BE_REPLACED(c) (replaceable & BIT(c))
#else
#define MAY_BE_REPLACED(c) ((REPLACED & BIT(c)) && !zon[c])
#endif
inline replace(c) {
  d_step {
    MAY_BE_REPLACED(c) && (na[c] || row[c]) ->
#ifdef PROGRESS
    replaceable = replaceable & ~BIT(c);
#endif
    zon[c] = 1; zcur[c] = cur[c];
    zrow[c] = (row[c] > COMMITTED -> ROLLED_BACK_DONE : row[c]); zratt[c] = ratt[c]; zrepo[c] = repo[c];
    if :: zrow[c] == ROLLED_BACK_DONE -> zratt[c] = 0; zrepo[c] = 0 :: else fi;
#ifdef B3_REUSED
    zcount[c] = count[c];
#endif
#ifdef LOOKUP
    if :: lkat == 1 && CELL_OF(lke) == c -> lkz = 1 :: else fi;
#endif
    lose_memory(c); printf("cell %d: the ledger's instance is REPLACED; the old one lives on\n", c)
  }
}

/* B3: the replaced instance also starts attempts, with its own incarnation. */
inline begin_replaced(c) {
  d_step {
    zon[c] && zrow[c] == NONE && !zcur[c] && na[c] < NA(c) && STILL_TRIES(c) ->
    na[c]++; zcur[c] = na[c]; name_attempt(c, 1); prep[E(c,na[c])] = ALL_OF(c,na[c]);
    printf("cell %d: the REPLACED instance starts attempt %d, prepares leave\n", c, na[c])
  }
}
inline end_replaced(c) {
  d_step {
    zcur[c] ->
    release(c, zcur[c]);
    printf("cell %d: the REPLACED instance ends attempt %d, releases leave\n", c, zcur[c]); zcur[c] = 0
  }
}
#ifdef PROGRESS
/* No progress may depend on a replaced instance: it ends at some time, silently. */
inline end_instance(c) {
  d_step {
    zon[c] ->
    zon[c] = 0; zcur[c] = 0; znew[c] = 0; zrow[c] = NONE; zratt[c] = 0; zrepo[c] = 0;
    printf("cell %d: the REPLACED instance ends\n", c)
  }
}
#endif
#ifdef REPLACED_WRITES
inline grant_replaced(c) {
  d_step {
    ALL_SAID_YES(c, zcur[c], 0, 0) ->
    write_grant(c, zcur[c], 0, 0);
    printf("cell %d: the REPLACED instance writes the row GRANTED by attempt %d\n", c, zcur[c]); zcur[c] = 0
  }
}
#endif

/* B8: a shard inquires about a hold, because of a collision, a lookup or its age. */
inline inquire(c, a, t, s) {
  d_step {
    hold[s] == HOLD(c,a,t) && !(drop[E(c,a)] & X(t,s)) && GONE(c,a,t,s) ->
    drop[E(c,a)] = drop[E(c,a)] | X(t,s);
    printf("cell %d: asked by shard %d about attempt %d, epoch %d: rolled back or gone\n", c, s, a, t)
  }
}
inline inquire_committed(c, a, t, s) {
  d_step {
    hold[s] == HOLD(c,a,t) && !(comm[E(c,a)] & X(t,s)) && IS_COMMITTED(c,a,t,s) ->
    comm[E(c,a)] = comm[E(c,a)] | X(t,s);
    printf("cell %d: asked by shard %d about attempt %d, epoch %d: committed\n", c, s, a, t)
  }
}
inline inquire_replaced(c, a, t, s) {
  d_step {
    hold[s] == HOLD(c,a,t) && !(drop[E(c,a)] & X(t,s)) && SPEAKS(c,a) && Z_GONE(c,a,t,s) ->
    drop[E(c,a)] = drop[E(c,a)] | X(t,s);
    printf("cell %d: the REPLACED instance answers shard %d, attempt %d, epoch %d: rolled back or gone\n",
      c, s, a, t)
  }
}
inline inquire_replaced_committed(c, a, t, s) {
  d_step {
    hold[s] == HOLD(c,a,t) && !(comm[E(c,a)] & X(t,s)) && SPEAKS(c,a) && zrow[c] == COMMITTED &&
      Z_RESTS_ON(c,a,t,s) ->
    comm[E(c,a)] = comm[E(c,a)] | X(t,s);
    printf("cell %d: the REPLACED instance answers shard %d, attempt %d, epoch %d: committed\n",
      c, s, a, t)
  }
}

/* ======================================= the shard ======================================= */
/*
 * B4: an execution that grants. A refusal only reads, so it is not a step; the ledger may end its attempt at
 * any time.
 */
inline prepare(c, a, t, s) {
  d_step {
    (prep[E(c,a)] & X(t,s)) && !((t) && (prep[E(c,a)] & X(0,s))) && CLEAR(c,s) ->
    prep[E(c,a)] = prep[E(c,a)] & ~X(t,s); hold[s] = HOLD(c,a,t); yes[E(c,a)] = yes[E(c,a)] | X(t,s);
    printf("shard %d: prepare of cell %d, attempt %d: yes, epoch %d\n", s, c, a, t)
  }
}
#if defined(B4_YES_TO_OWN) || defined(B4_TAKES_OVER)
inline prepare_again(c, a, s) {
  d_step {
    (prep[E(c,a)] & X(0,s)) && OWNED_BY(s,c) && E_OF(hold[s]) != E(c,a) ->
    prep[E(c,a)] = prep[E(c,a)] & ~X(0,s); yes[E(c,a)] = yes[E(c,a)] | X(0,s);
#ifdef B4_TAKES_OVER
    hold[s] = HOLD(c,a,0);
    printf("shard %d: prepare of cell %d, attempt %d: yes, it takes over the hold of an older attempt\n",
      s, c, a);
#else
    printf("shard %d: prepare of cell %d, attempt %d: yes, for the lease holds already\n", s, c, a);
#endif
  }
}
#endif

#ifdef C2_ROLLBACK_BY_LEASE
#define DROPS(h,c,a,t) ((h) && CELL_OF(h) == (c))
#elif defined(M1_NOT_READ_AGAIN)
#define DROPS(h,c,a,t) ((h) != 0)
#else
#define DROPS(h,c,a,t) SAME(h,c,a,t)
#endif
#ifdef C2_COMMIT_BY_LEASE
#define APPLIES(h,c,a,t) ((h) && CELL_OF(h) == (c))
#else
#define APPLIES(h,c,a,t) SAME(h,c,a,t)
#endif

#ifdef PROGRESS
inline refuse(c, a, t, s) {                      /* a prepare is refused or lost */
  d_step {
    prep[E(c,a)] & X(t,s) ->
    prep[E(c,a)] = prep[E(c,a)] & ~X(t,s);
    printf("shard %d: prepare of cell %d, attempt %d: refused or lost\n", s, c, a)
  }
}
#define TAKE(set,c,a,t,s) set[E(c,a)] = set[E(c,a)] & ~X(t,s)
#define CONFIRM(c,a,t,s,state) if :: row[c] == state && IS_ROW(c,a,t,s) -> ackm[c] = ackm[c] | BIT(s) \
  :: else fi
inline deliver_drop(c, a, t, s) {
  d_step {
    drop[E(c,a)] & X(t,s) ->
    TAKE(drop,c,a,t,s);
    if :: DROPS(hold[s],c,a,t) -> drop_hold(s) :: else fi;
    CONFIRM(c,a,t,s,ROLLED_BACK);
    printf("shard %d: release, rollback or gone of cell %d, attempt %d, epoch %d\n", s, c, a, t)
  }
}
inline deliver_commit(c, a, t, s) {
  d_step {
    comm[E(c,a)] & X(t,s) ->
    TAKE(comm,c,a,t,s);
    if :: APPLIES(hold[s],c,a,t) -> apply(s) :: else fi;
    CONFIRM(c,a,t,s,COMMITTED);
    printf("shard %d: commit of cell %d, attempt %d, epoch %d\n", s, c, a, t)
  }
}
inline lose_message(c, a, t, s) {
  d_step {
    ((drop[E(c,a)] | comm[E(c,a)]) & X(t,s)) && losses ->
    losses--; TAKE(drop,c,a,t,s); TAKE(comm,c,a,t,s);
    printf("a decision of cell %d, attempt %d for shard %d is lost\n", c, a, s)
  }
}
#else
/* B6, B8, C2: drops or applies only the hold of this execution. */
inline deliver_drop(c, a, t, s) {
  d_step {
    (drop[E(c,a)] & X(t,s)) && DROPS(hold[s],c,a,t) ->
    drop_hold(s);
    printf("shard %d: release, rollback or gone of cell %d, attempt %d, epoch %d: the hold is dropped\n",
    s, c, a, t)
  }
}
inline deliver_commit(c, a, t, s) {
  d_step {
    (comm[E(c,a)] & X(t,s)) && APPLIES(hold[s],c,a,t) ->
    apply(s); printf("shard %d: commit of cell %d, attempt %d, epoch %d: applied\n", s, c, a, t)
  }
}
#ifdef C2_WITHOUT_HOLD
inline deliver_commit_anyway(c, a, s) {
  d_step {
    (comm[E(c,a)] & X(0,s)) && !SAME(hold[s],c,a,0) && (IS_DESTROY(c) -> clm[s] != 0 : !clm[s]) ->
    clm[s] = (IS_DESTROY(c) -> 0 : c + 1);
    printf("shard %d: commit of cell %d, attempt %d: applied without a hold\n", s, c, a)
  }
}
#endif
#endif
#ifdef C5_TIMER
inline time_out(s) { d_step { hold[s] -> drop_hold(s);
  printf("shard %d: the hold is too old and is dropped\n", s) } }
#endif

/*
 * ======================= other leases of the owner =======================
 * They destroy a claim, or create it again, between the steps of the two leases.
 */
inline destroy_elsewhere(c, s) {
  d_step {
    clm[s] == (c) + 1 && !hold[s] && (has[c] & BIT(s)) && !IS_DESTROY(c) ->
    clm[s] = 0; own(c, has[c] & ~BIT(s));
    printf("cell %d: another lease destroys the claim of shard %d\n", c, s)
  }
}
inline create_elsewhere(c, s) {
  d_step {
    IS_DESTROY(c) && !clm[s] && !hold[s] && !(has[c] & BIT(s)) ->
    clm[s] = (c) + 1; own(c, has[c] | BIT(s));
    printf("cell %d: another lease creates the claim of shard %d again\n", c, s)
  }
}

/*
 * ======================= a lookup at shard 0 (R2) =======================
 * Its answer must have been true at some moment between its start and its end.
 */
#ifdef LOOKUP
#define V_GRANTED 1
#define V_RUNNING 2
#define V_COMMITTED 3
#define V_GONE 4
#define V_UNKNOWN 5
#define LKA(c) (E_OF(lke) - 3 * (c) + 1)
#define LKT (lke >> 3)
#ifdef R2_BY_LEASE
#define LK_IS_ROW(c) (row[c] != NONE)
#else
#define LK_IS_ROW(c) IS_ROW(c,LKA(c),LKT,0)
#endif
#define HAD_BY_NOBODY (!(has[0] & 1) && !(has[1] & 1))

inline lk_end() { lkat = 0; lke = 0; lkans = 0; lksaw = 0; lkfree = 0; lkz = 0 }
inline lk_ask() { lkat = 1; lke = hold[0]; lkans = 0; lkz = 0; see();
  printf("lookup: meets hold of cell %d, asks\n", CELL_OF(lke)) }

inline lookup() {
  d_step {
    lkat == 0 ->
    if
    :: clm[0] && !hold[0] -> MUST(untrue_lookup, has[clm[0] - 1] & 1)
    :: !clm[0] && !hold[0] -> MUST(untrue_lookup, HAD_BY_NOBODY) /* nothing there: not found */
#ifdef R2_DESTROY_NOT_ASKED
    :: clm[0] && hold[0] ->
       printf("lookup: shows the claim of cell %d without asking about its destroy hold\n", clm[0] - 1);
       MUST(untrue_lookup, has[clm[0] - 1] & 1)
#else
    :: clm[0] && hold[0] -> lk_ask()
#endif
#ifdef R2_NOT_ASKED
    :: !clm[0] && hold[0] ->
       printf("lookup: shows the create hold of cell %d without asking\n", CELL_OF(hold[0]));
       MUST(untrue_lookup, has[CELL_OF(hold[0])] & 1)
#elif defined(R2_REMEMBERS)
    :: !clm[0] && hold[0] && lkknown -> printf("lookup: shows a hold that it remembers as granted\n");
      MUST(untrue_lookup, has[CELL_OF(hold[0])] & 1)
    :: !clm[0] && hold[0] && !lkknown -> lk_ask()
#else
    :: !clm[0] && hold[0] -> lk_ask()
#endif
    fi
  }
}
inline lk_answer(c) {
  d_step {
    lkat == 1 && CELL_OF(lke) == c ->
    lkat = 2;
    if
    :: row[c] == GRANTED && LK_IS_ROW(c) -> lkans = V_GRANTED
    :: row[c] == COMMITTED && LK_IS_ROW(c) -> lkans = V_COMMITTED
    :: row[c] == NONE && cur[c] == LKA(c) -> lkans = V_RUNNING
    :: else -> lkans = V_GONE
    fi;
    printf("lookup: cell %d answers %d (1 granted, 2 running, 3 committed, 4 gone)\n", c, lkans)
  }
}
/* An inquiry that was sent before the replacement may still reach the old instance. */
inline lk_answer_replaced(c) {
  d_step {
    lkat == 1 && CELL_OF(lke) == c && lkz && SPEAKS(c,LKA(c)) ->
    lkat = 2;
    if
    :: zrow[c] == GRANTED && Z_RESTS_ON(c,LKA(c),LKT,0) -> lkans = V_GRANTED
    :: zrow[c] == COMMITTED && Z_RESTS_ON(c,LKA(c),LKT,0) -> lkans = V_COMMITTED
    :: zrow[c] == NONE && zcur[c] == LKA(c) -> lkans = V_RUNNING
    :: else -> lkans = V_GONE
    fi;
    printf("lookup: REPLACED cell %d answers %d (1 granted, 2 running, 3 committed, 4 gone)\n", c, lkans)
  }
}
/* The ledger is unavailable. */
inline lk_fail() {
  d_step {
    lkat == 1 ->
#ifdef R2_UNKNOWN_IS_NONE
    printf("lookup: the ledger does not answer: not found\n"); MUST(untrue_lookup, lkfree);
#endif
    lk_end()
  }
}
#ifdef R2_NOT_READ_AGAIN
inline lk_read() {
  d_step {
    lkat == 2 ->
    if
    :: lkans == V_GRANTED || lkans == V_COMMITTED -> printf("lookup: shows cell %d\n", CELL_OF(lke));
      MUST(untrue_lookup, lksaw & BIT(CELL_OF(lke)))
    :: else -> printf("lookup: not found\n"); MUST(untrue_lookup, lkfree)
    fi;
    lk_end()
  }
}
#else
/* First the verdict is carried out (B8), then the bucket is read again. */
inline lk_clear() {
  d_step { lkat == 2 && lkans >= V_COMMITTED && hold[0] == lke -> if :: lkans == V_COMMITTED ->
    apply(0) :: else -> drop_hold(0) fi }
}
inline lk_read() {
  d_step {
    lkat == 2 && !(lkans >= V_COMMITTED && hold[0] == lke) ->
    if
    :: clm[0] && (!hold[0] || (hold[0] == lke && (lkans == V_GRANTED || lkans == V_RUNNING))) ->
      printf("lookup: shows the claim of cell %d\n", clm[0] - 1);
      MUST(untrue_lookup, lksaw & BIT(clm[0] - 1)); lk_end()
    :: !clm[0] && hold[0] == lke && lkans == V_GRANTED ->
       printf("lookup: shows cell %d, LEASE_CREATING\n", CELL_OF(lke));
       MUST(untrue_lookup, lksaw & BIT(CELL_OF(lke)));
#ifdef R2_REMEMBERS
       lkknown = 1;
#endif
       lk_end()
    :: !clm[0] && (!hold[0] || (hold[0] == lke && lkans == V_RUNNING)) -> printf("lookup: not found\n");
      MUST(untrue_lookup, lkfree); lk_end()
    :: hold[0] && hold[0] != lke -> lk_ask()
    fi
  }
}
/* After several rounds the answer is that without a hold, because there was none when the hold changed. */
inline lk_give_up() {
  d_step {
    lkat == 2 && hold[0] && hold[0] != lke ->
    printf("lookup: shows what there is without the hold, because it changed\n");
    if
    :: clm[0] -> MUST(untrue_lookup, lksaw & BIT(clm[0] - 1))
    :: else -> MUST(untrue_lookup, lkfree)
    fi;
    lk_end()
  }
}
#endif
#endif

/* ======================================= all steps ======================================= */
#define EACH_C(step) :: step(0) :: step(1)
#define EACH_S(step) :: step(0) :: step(1)
#define EACH_CS(step) :: step(0,0) :: step(0,1) :: step(1,0) :: step(1,1)
#define OUTCOMES(step) :: step(0,COMMITTED) :: step(0,ROLLED_BACK) :: step(1,COMMITTED) :: step(1,ROLLED_BACK)
#if DUP
#define EPOCHS(step,c) :: step(c,0,0) :: step(c,0,1) :: step(c,1,0) :: step(c,1,1)
#define EACH_TS(step,c,a) :: step(c,a,0,0) :: step(c,a,0,1) :: step(c,a,1,0) :: step(c,a,1,1)
#else
#define EPOCHS(step,c) :: step(c,0,0)
#define EACH_TS(step,c,a) :: step(c,a,0,0) :: step(c,a,0,1)
#endif
#define AT_EACH_S(step,c,a) :: step(c,a,0) :: step(c,a,1)
#if NA0 == 1
#define ATTEMPTS0(each,step) each(step,0,1)
#elif NA0 == 2
#define ATTEMPTS0(each,step) each(step,0,1) each(step,0,2)
#else
#define ATTEMPTS0(each,step) each(step,0,1) each(step,0,2) each(step,0,3)
#endif
#if NA1 == 0
#define ATTEMPTS1(each,step)
#elif NA1 == 1
#define ATTEMPTS1(each,step) each(step,1,1)
#elif NA1 == 2
#define ATTEMPTS1(each,step) each(step,1,1) each(step,1,2)
#else
#define ATTEMPTS1(each,step) each(step,1,1) each(step,1,2) each(step,1,3)
#endif
#define EACH_EXECUTION(step) ATTEMPTS0(EACH_TS,step) ATTEMPTS1(EACH_TS,step)
#define EACH_ATTEMPT_S(step) ATTEMPTS0(AT_EACH_S,step) ATTEMPTS1(AT_EACH_S,step)

active proctype System() {
#ifdef DESTROY
  d_step { clm[0] = 1; clm[1] = 1; has[0] = 3 };
#endif
end:
  do
  :: atomic {
       if
       EACH_C(begin)
       EPOCHS(grant,0) EPOCHS(grant,1)
       EPOCHS(grant_ambiguously,0) EPOCHS(grant_ambiguously,1)
#ifndef B6_NO_DEADLINE
       EACH_C(end_attempt)
#endif
       OUTCOMES(decide)
       EACH_C(fence)
       EACH_CS(confirm)
       EACH_C(finish)
       EACH_C(prune)
       EACH_C(crash)
       EACH_C(replace)
       EACH_C(begin_replaced)
       EACH_C(end_replaced)
       EACH_EXECUTION(prepare)
       EACH_EXECUTION(deliver_drop)
       EACH_EXECUTION(deliver_commit)
#if (!defined(REDUCED) || defined(PROGRESS)) && !defined(B8_NO_INQUIRY)
       EACH_EXECUTION(inquire)
       EACH_EXECUTION(inquire_committed)
       EACH_EXECUTION(inquire_replaced)
       EACH_EXECUTION(inquire_replaced_committed)
#endif
       EACH_CS(destroy_elsewhere)
#ifdef DESTROY
       EACH_CS(create_elsewhere)
#endif
#ifdef PROGRESS
#ifndef C3_NOT_REPEATED
       EACH_CS(repeat)
#endif
       EACH_CS(lose_confirmation)
       EACH_EXECUTION(refuse)
       EACH_EXECUTION(lose_message)
       EACH_C(end_instance)
       /* no progress may depend on a fault: from here on no instance fails */
       :: d_step { replaceable || crashes[0] < CRASHES || crashes[1] < CRASHES -> replaceable = 0;
         crashes[0] = CRASHES; crashes[1] = CRASHES }
       :: d_step { !done[0] -> done[0] = 1 } /* the cell gives up; its leases must still end */
       :: d_step { !done[1] -> done[1] = 1 }
#endif
#ifdef LOOKUP
       :: lookup()
       EACH_C(lk_answer)
       EACH_C(lk_answer_replaced)
       :: lk_fail()
       :: lk_read()
#ifndef R2_NOT_READ_AGAIN
       :: lk_clear()
       :: lk_give_up()
#endif
#endif
       /* steps of single switches */
#ifdef B5_NOT_FLUSHED
       EACH_C(flush_grant)
#endif
#if defined(B5_TWO_TURNS) || defined(B6_LATE_GRANT)
       EACH_C(grant_late)
#endif
#if defined(C2_NOT_FLUSHED) || defined(C2_READ_UNFLUSHED)
       OUTCOMES(flush_decision)
#endif
#ifdef C1_SECOND_DECISION
       EACH_C(decide_again)
#endif
#ifdef REPLACED_WRITES
       EACH_C(grant_replaced)
#endif
#if defined(B4_YES_TO_OWN) || defined(B4_TAKES_OVER)
       EACH_ATTEMPT_S(prepare_again)
#endif
#ifdef C2_WITHOUT_HOLD
       EACH_ATTEMPT_S(deliver_commit_anyway)
#endif
#ifdef C5_TIMER
       EACH_S(time_out)
#endif
       fi;
       d_step { check(); forget() }
     }
  od
}

#ifdef PROGRESS
active proctype Rest() {
  timeout ->
  printf("in the end: holds %d %d, claims %d %d, rows %d %d\n", hold[0], hold[1], clm[0], clm[1], row[0],
    row[1]);
  MUST(endless_begin, !cur[0] && !cur[1]);
  MUST(orphan_hold, !hold[0] && !hold[1]);
  MUST(undone_decision, (row[0] == NONE || row[0] >= COMMITTED_DONE) && (row[1] == NONE ||
    row[1] >= COMMITTED_DONE))
}
#endif
