/*
 * The rules of docs/reference/protocol.md by which a router keeps answers (Q1 to Q6, Q9): one shard with one
 * bucket, the ledgers of its holds, and a router that looks the bucket up, keeps the answer, and asks for
 * reports. lease.pml shows that a lookup is true (R2); this file starts from there. docs/internals/model.md
 * lists the abstractions. main.ts runs this file with the bounds and switches of runs.ts.
 *
 * Positions and epochs are the same numbers: a hold has the position at which it was put there. So the epoch
 * of a claim names one version of the bucket, and 0 means that nobody has it.
 *
 * Time. At some moment M everything that was sent before is marked `old`. At some later moment, the bound B
 * has passed since M: from then on the router may not use anything that rests on old evidence alone, and
 * everything that it shows must have been true at some moment since M. The search goes through every choice
 * of both moments, so this is the promise for every B.
 *
 * The shard reads a question in the step that sends it. A delay in between would only make the answer older
 * than it is, so fewer answers could be used.
 *
 * Modes, of which runs.ts combines some:
 *   (default)   one lookup at a time
 *   ORDER       two lookups at a time, whose answers may overtake each other (Q6)
 *   REPORTS     the router also asks for reports, one at a time
 *   CRASH       what the shard writes is durable later, and a crash may lose it, once
 *   PRUNE       the shard forgets its log
 *   LOSS        the shard's storage goes back to its first state, and an operator accepts the loss (H6)
 *   OWN         a client's begin was granted; it asks with the position of its grant (Q9)
 */

/* ---- bounds ---- */
#ifndef HOLDS
#define HOLDS 2          /* how many holds are put on the bucket */
#endif
#ifdef ORDER
#define LOOKUPS 2
#else
#define LOOKUPS 1
#endif

#define BIT(n) (1 << (n))
#define UPTO(n) ((1 << ((n) + 1)) - 1)

/* ---- the shard: what its instance sees, and what a crash would leave ---- */
byte clm, hold, pos;     /* the claim's epoch, the hold's epoch, the newest position */
byte dclm, dhold, dpos;
short held;              /* the log: bit p: at position p the bucket was put on hold */
byte low;                /* the log has every row after this position */
byte lossat;             /* an accepted loss: the first position after it */
bool crashed, others;
byte holds;
byte at;                 /* a counter */

/* ---- the ledgers: the state of the lease of each hold ---- */
#define RUNNING 0
#define GRANTED 1
#define COMMITTED 2
#define GONE 3           /* rolled back, or never granted */
#define MOST 12
byte lease[MOST];

/* ---- the router ---- */
byte qat[LOOKUPS];       /* a lookup: 0 none, 1 the shard waits for a ledger, 2 the answer is under way */
byte qval[LOOKUPS], qpos[LOOKUPS];
bool qset[LOOKUPS], qold[LOOKUPS];
bool kept;               /* it has an entry */
byte kval, kpos;
bool kold;
#ifdef ORDER
byte shown, shownat;     /* the largest epoch and position that it has shown */
#endif
#ifdef REPORTS
byte asked;              /* a report: 0 none, 1 it waits until what it tells is durable, 2 it is under way */
byte rthrough, rlast;    /* its last position, and the position of its row with keys; 0: none */
bool rmore, rpruned, rold;
bool covered, fresh, cold; /* it has reports; the newest page is one of them; that was asked for before M */
byte cfrom, cthrough;
byte clast;              /* the last listed position */
#endif
#ifdef OWN
byte own;                /* the client's grant, the smallest position that its requests accept */
short ownseen;           /* what was true since the grant */
bool qown[LOOKUPS];      /* the lookup was sent after the client's request */
#endif

byte phase;              /* 1: after M, 2: B has passed since M */
short seen;              /* what was true at some moment since M */

/* ======================= properties ======================= */
#define MUST(name, condition) assert((condition) || name == 0)
#define untrue_route            1 /* a shown answer was true at some moment in the last B */
#define smaller_epoch           2 /* a router never shows a smaller epoch than it has shown */
#define own_write_unread        3 /* an answer with min_position was true at some moment since the grant */

/* What a lookup shows (R2): the claim, the create of a granted lease, or what a decision has made of it. */
#define IS_CREATE (!clm)
#define TRUTH ( \
  hold == 0 -> clm : ( \
  lease[hold] == COMMITTED -> (IS_CREATE -> hold : 0) : ( \
  lease[hold] == GRANTED && IS_CREATE -> hold : clm)))

inline see() {
  if :: phase -> seen = seen | BIT(TRUTH) :: else fi;
#ifdef OWN
  if :: own -> ownseen = ownseen | BIT(TRUTH) :: else fi
#endif
}

/* ======================================= the shard ======================================= */
/* Nobody asks about leases whose holds have ended. */
inline make_durable() {
  dclm = clm; dhold = hold; dpos = pos;
  at = 1;
  do :: at < MOST -> lease[at] = (at == hold -> lease[at] : 0); at++ :: else -> break od;
  at = 0
}
inline forget_lookup(i) { qat[i] = 0; qval[i] = 0; qpos[i] = 0; qset[i] = 0; qold[i] = 0 }
#ifdef REPORTS
inline forget_report() { asked = 0; rthrough = 0; rlast = 0; rmore = 0; rpruned = 0; rold = 0 }
#endif
inline wrote() {
#ifdef CRASH
  skip
#else
  make_durable()
#endif
}

inline put_hold() {
  d_step {
    !hold && holds < HOLDS ->
    holds++; pos++; hold = pos; lease[pos] = RUNNING;
#ifdef Q1_FORGETS_DESTROYS
    if :: IS_CREATE -> held = held | BIT(pos) :: else fi;
#else
    held = held | BIT(pos);
#endif
    wrote();
    printf("shard: position %d: a hold (claim: %d)\n", pos, clm)
  }
}
/* B4: the yes leaves when the hold is durable. */
inline grant() {
  d_step {
    hold && hold == dhold && lease[hold] == RUNNING ->
    lease[hold] = GRANTED; printf("ledger: the lease of hold %d is granted\n", hold);
#ifdef OWN
    if :: !own && IS_CREATE -> own = hold :: else fi;
#endif
    see()
  }
}
inline end_lease(from, outcome) {
  d_step {
    hold && lease[hold] == from ->
    lease[hold] = outcome; see();
    printf("ledger: the lease of hold %d is now %d (2 committed, 3 gone)\n", hold, outcome)
  }
}
/* C2, B8: the shard applies the decision. */
inline end_hold() {
  d_step {
    hold && lease[hold] >= COMMITTED ->
    pos++;
    if :: lease[hold] == COMMITTED -> clm = (IS_CREATE -> hold : 0) :: else fi;
    hold = 0; wrote(); see();
    printf("shard: position %d: the hold ends (claim: %d)\n", pos, clm)
  }
}
#ifdef CRASH
/* A transaction about other keys. */
inline other() {
  d_step { !others && !crashed -> others = 1; pos++; printf("shard: position %d: another key\n", pos) }
}
inline flush() {
  d_step { dpos != pos -> make_durable(); printf("shard: position %d is durable\n", pos) }
}
inline crash() {
  d_step {
    dpos != pos && !crashed ->
    crashed = 1;
    if :: qat[0] == 1 -> forget_lookup(0) :: else fi;
#ifdef ORDER
    if :: qat[1] == 1 -> forget_lookup(1) :: else fi;
#endif
#ifdef REPORTS
    if :: asked == 1 -> forget_report() :: else fi;
#endif
    clm = dclm; hold = dhold; pos = dpos; held = held & UPTO(dpos);
    printf("shard: crashes, its position is %d again\n", pos); see()
  }
}
#endif
#ifdef PRUNE
inline prune() {
  d_step {
    low < dpos -> low = dpos; held = held & ~UPTO(low);
    printf("shard: forgets its log up to %d\n", low)
  }
}
#endif
#ifdef LOSS
/* H6: positions go on above everything that was seen, and lookups show what the storage has. */
inline lose() {
  d_step {
    !lossat && dpos > 1 ->
    pos = (pos > dpos -> pos : dpos) + 1;
    lossat = pos; clm = 1; hold = 0; held = 0; low = 0; make_durable(); see();
    printf("shard: its storage is as at position 1; position %d: the loss is accepted\n", pos)
  }
}
#endif

/* ======================================= lookups ======================================= */
/* Without CRASH, everything is durable at once. */
#ifdef CRASH
#define MUST_WAIT 1
#else
#define MUST_WAIT 0
#endif
/*
 * Q2: the position and `settled` are of the turn in which the key is read first. A settled answer may wait
 * too, because another key of the lookup has a hold.
 */
inline ask(i) {
  d_step {
    qat[i] == 0 ->
    qold[i] = 0;
#ifdef OWN
    qown[i] = (own != 0);
#endif
    qpos[i] = pos; qset[i] = !hold; qat[i] = (MUST_WAIT || hold -> 1 : 2); qval[i] = (hold -> 0 : clm);
    printf("shard: lookup %d reads the key at position %d (settled: %d)\n", i, qpos[i], qset[i])
  }
}
/*
 * R2: what a key with a hold shows was true at some moment after the inquiry. The answer leaves when all that
 * was read is durable.
 */
#ifdef Q2_NOT_DURABLE
#define MAY_LEAVE(i) 1
#else
#define MAY_LEAVE(i) (qpos[i] <= dpos)
#endif
inline answer(i) {
  d_step {
    qat[i] == 1 && MAY_LEAVE(i) -> qat[i] = 2; if :: !qset[i] -> qval[i] = TRUTH :: else fi;
    printf("shard: lookup %d is answered: %d\n", i, qval[i])
  }
}
#ifdef Q2_POSITION_LATE
inline answer_late(i) {
  d_step { qat[i] == 2 && qpos[i] != dpos -> qpos[i] = dpos;
    printf("shard: lookup %d is answered with position %d\n", i, dpos) }
}
#endif

#if !defined(ORDER) || defined(Q6_NO_FLOOR)
#define GOES_BACK(value,position) 0
#else
#define GOES_BACK(value,position) (((value) && (value) < shown) || (position) < shownat)
#endif
inline present(value, position) {
#ifdef ORDER
  MUST(smaller_epoch, !(value) || (value) >= shown);
  if :: (value) > shown -> shown = value :: else fi;
  if :: (position) > shownat -> shownat = position :: else fi;
#endif
  if :: phase == 2 -> MUST(untrue_route, seen & BIT(value)) :: else fi
}
#define IS_OLD(old) (phase == 2 && (old))

/* Q4, Q6: an answer is used if it is young and does not go back. Q2: only a settled one is kept. */
inline receive(i) {
  d_step {
    qat[i] == 2 ->
#ifdef Q4_FROM_ARRIVAL
    qold[i] = 0;
#endif
    if
    :: GOES_BACK(qval[i], qpos[i]) -> printf("router: lookup %d goes back, thrown away\n", i)
    :: else ->
       if
       :: !IS_OLD(qold[i]) -> printf("router: shows %d, the answer of lookup %d\n", qval[i], i);
          present(qval[i], qpos[i])
       :: else
       fi;
#ifdef Q2_KEEPS_UNSETTLED
       if :: true -> kept = 1; kval = qval[i]; kpos = qpos[i]; kold = qold[i] fi
#else
       if
       :: qset[i] -> kept = 1; kval = qval[i]; kpos = qpos[i]; kold = qold[i];
          printf("router: keeps it, of position %d\n", kpos)
       :: else
       fi
#endif
    fi;
    forget_lookup(i)
  }
}
#ifdef OWN
/* Q9: the request takes an answer of no smaller position, to a question that left after it came. */
#ifdef Q9_JOINS
#define MAY_ANSWER(i) 1
#else
#define MAY_ANSWER(i) qown[i]
#endif
#ifdef Q9_IGNORED
#define IS_ENOUGH(position) 1
#else
#define IS_ENOUGH(position) ((position) >= own)
#endif
inline receive_own(i) {
  d_step {
    own && qat[i] == 2 && MAY_ANSWER(i) && IS_ENOUGH(qpos[i]) ->
    printf("client: is shown %d, the answer of lookup %d at position %d\n", qval[i], i, qpos[i]);
    MUST(own_write_unread, ownseen & BIT(qval[i]))
  }
}
inline use_own() {
  d_step {
    own && kept && IS_ENOUGH(kpos) ->
    printf("client: is shown %d, the entry of position %d\n", kval, kpos);
    MUST(own_write_unread, ownseen & BIT(kval))
  }
}
#endif

/* ======================================= reports (Q3) ======================================= */
#ifdef REPORTS
#if defined(Q3_NOT_REFUSED)
#define IS_PRUNED 0
#elif defined(Q3_SILENT_LOSS)
#define IS_PRUNED (cthrough < low)
#else
#define IS_PRUNED (cthrough < low || cthrough < lossat)
#endif
/* A page has one row with keys. It ends with that row if there is another one. */
#define ROWS (held & UPTO(pos) & ~UPTO(cthrough))
inline report() {
  d_step {
    !asked -> asked = (MUST_WAIT -> 1 : 2);
    if
    :: !covered -> rthrough = pos
    :: covered && IS_PRUNED -> rpruned = 1
    :: covered && !IS_PRUNED ->
       at = cthrough;
       do
       :: at < pos && !rlast -> at++; if :: ROWS & BIT(at) -> rlast = at :: else fi
       :: else -> break
       od;
       rmore = ((ROWS & ~UPTO(at)) != 0);
       rthrough = (rmore -> at : pos); at = 0
    fi;
    printf("shard: report after %d through %d, row %d, more %d, pruned %d\n", cthrough, rthrough, rlast,
      rmore, rpruned)
  }
}
#ifdef CRASH
#ifdef Q3_NOT_DURABLE
#define MAY_TELL 1
#else
#define MAY_TELL (rthrough <= dpos)
#endif
inline tell() { d_step { asked == 1 && MAY_TELL -> asked = 2; printf("shard: the report leaves\n") } }
#endif
inline forget_reports() { covered = 0; fresh = 0; cold = 0; cfrom = 0; cthrough = 0; clast = 0 }
inline receive_report() {
  d_step {
    asked == 2 ->
#ifdef Q5_REPORT_FROM_ARRIVAL
    rold = 0;
#endif
    if
    :: rpruned ->
#ifdef Q5_GAP_IGNORED
       cthrough = dpos; fresh = 1; cold = rold
#else
       forget_reports()
#endif
    :: !rpruned && !covered ->
       covered = 1; cfrom = rthrough; cthrough = rthrough; clast = 0; fresh = 1; cold = rold
    :: !rpruned && covered ->
       cthrough = rthrough; clast = (rlast -> rlast : clast);
#ifdef Q5_FULL_IS_NEWEST
       fresh = 1; cold = rold
#else
       if :: !rmore -> fresh = 1; cold = rold :: else fi
#endif
    fi;
    printf("router: has reports from %d through %d, last row %d\n", cfrom, cthrough, clast);
    forget_report()
  }
}
#ifdef Q5_BEFORE_COVERAGE
#define IS_COVERED covered
#else
#define IS_COVERED (covered && cfrom <= kpos)
#endif
#define IS_PROVEN (IS_COVERED && fresh && !IS_OLD(cold) && clast <= kpos)
#else
#define IS_PROVEN 0
#endif

/* Q5: an entry is used while it is young, or while a young report proves that it has not changed. */
inline use_entry() {
  d_step {
    kept && (!IS_OLD(kold) || IS_PROVEN) && !GOES_BACK(kval, kpos) ->
    printf("router: shows %d, its entry of position %d\n", kval, kpos);
    present(kval, kpos)
  }
}

/* ======================================= time ======================================= */
#define MARK(i) qold[i] = (qat[i] != 0)
inline mark() {
  d_step {
    phase == 0 -> phase = 1; seen = BIT(TRUTH);
    kold = kept; MARK(0);
#ifdef ORDER
    MARK(1);
#endif
#ifdef REPORTS
    cold = fresh; rold = (asked != 0);
#endif
    printf("M: everything that was sent until now is old\n")
  }
}
inline pass() {
  d_step {
    phase == 1 -> phase = 2;
#ifdef REPORTS
    if :: cold -> fresh = 0; cold = 0 :: else fi;
#endif
    printf("B has passed since M\n")
  }
}

#ifdef ORDER
#define EACH(step) :: step(0) :: step(1)
#else
#define EACH(step) :: step(0)
#endif

active proctype System() {
  /* Epoch 1 belongs to a claim that is there from the start. */
  d_step { clm = 1; pos = 1; dclm = 1; dpos = 1; low = 1 };
end:
  do
  :: put_hold()
  :: grant()
  :: end_lease(RUNNING, GONE)
  :: end_lease(GRANTED, COMMITTED)
  :: end_lease(GRANTED, GONE)
  :: end_hold()
#ifdef CRASH
  :: other()
  :: flush()
  :: crash()
#endif
#ifdef PRUNE
  :: prune()
#endif
#ifdef LOSS
  :: lose()
#endif
  EACH(ask)
  EACH(answer)
#ifdef Q2_POSITION_LATE
  EACH(answer_late)
#endif
  EACH(receive)
  :: use_entry()
#ifdef OWN
  EACH(receive_own)
  :: use_own()
#endif
#ifdef REPORTS
  :: report()
#ifdef CRASH
  :: tell()
#endif
  :: receive_report()
#endif
  :: mark()
  :: pass()
  od
}
