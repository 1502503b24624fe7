/*
 * How a ledger keeps track of what is unfinished, without a write when a decision is applied (C3, R1, S1, S2
 * of docs/reference/protocol.md). lease.pml says when a lease is granted and decided. docs/internals/model.md
 * lists the abstractions. main.ts runs this file with the bounds and switches of runs.ts.
 *
 *   position    Each grant, decision and fence takes the next one. A row has the position at which it was
 *               inserted (`created`) and that of its last change.
 *   pending     A column of the row. Only the rows in which it is set are in an index.
 *   through     A stored position. Each row up to it that is granted, or whose decision may not be applied on
 *               all shards, is pending. Rows above it are not pending, whatever their state.
 *   advance     From time to time, one transaction moves `through` to the last position. It sets and clears
 *               `pending`.
 *   start       reads the pending rows and those above `through`. It sends all decisions among them again.
 *
 * All leases are committed, because losing a commit loses a claim. After each step, check() compares what a
 * start would read with what is unfinished. Crashes, advances and lost answers are not limited.
 */

/* ---- bounds ---- */
#ifndef LEASES
#define LEASES 3         /* 2 to 4. They are interchangeable, so rows are inserted in ascending order. */
#endif
#define SHARDS 2         /* each has a hold of each granted lease */

#define NONE 0
#define GRANTED 1
#define DECIDED 2
#define FENCE 3          /* the rollback of a lease that was never granted (C7) */
#define FORGOTTEN 4      /* the row was deleted */

/* ---- rows ---- */
byte row[LEASES], created[LEASES], position[LEASES];
bool pending[LEASES];
byte through;
byte pruned;             /* the largest position of a fence that was deleted */

/* ---- memory: what is known of a decision ---- */
#define UNKNOWN 0
#define OPEN 1           /* it is sent until all shards have confirmed it */
#define APPLIED 2
byte known[LEASES];
byte last;               /* the last position */

/* ---- shards: how many have the hold. The others applied the decision, or there was no grant. ---- */
byte holding[LEASES];

byte l, at_start;
#ifdef R1_ADVANCES_UNREAD
byte read_to = 255;      /* the last position when the advance read the rows */
#endif

/* ======================= properties ======================= */
#define MUST(name, condition) assert((condition) || name == 0)
#define lease_unread            1 /* a start reads each granted lease */
#define decision_forgotten      2 /* no row is deleted before all shards have applied its decision */
#define decision_unread         3 /* a start reads each decision that some shard has not applied */
#define decision_unsent         4 /* such a decision is open in memory, or found in the index */
#define committed_gone          5 /* no shard is told that its hold of a granted or committed lease is gone */
#define position_repeated       6 /* the next position is above all earlier ones, also after a start */

#define EXISTS(l) (row[l] != NONE && row[l] != FORGOTTEN)
#define IS_ABOVE(l) (created[l] > through)
#if defined(R1_READS_PENDING)
#define IS_READ(l) (EXISTS(l) && pending[l])
#elif defined(R1_READS_ABOVE)
#define IS_READ(l) (EXISTS(l) && IS_ABOVE(l))
#else
#define IS_READ(l) (EXISTS(l) && (pending[l] || IS_ABOVE(l)))
#endif

/* B8: a hold of a decision that is known to be applied everywhere has ended, and so has that of no row. */
#ifdef S2_GONE_ABOVE
#define IS_GONE(l) (!EXISTS(l) || (row[l] == DECIDED && !pending[l]))
#else
#define IS_GONE(l) (!EXISTS(l) || (row[l] == DECIDED && !pending[l] && !IS_ABOVE(l)))
#endif

#define MAX(a,b) ((a) > (b) -> (a) : (b))
#ifdef H1_LAST_CREATED
#define LAST_OF(l) created[l]
#else
#define LAST_OF(l) position[l]
#endif
inline check() {
  d_step {
    at_start = MAX(through, pruned);
    for (l : 0 .. LEASES - 1) {
      MUST(lease_unread, row[l] != GRANTED || IS_READ(l));
      MUST(decision_forgotten, row[l] != FORGOTTEN || !holding[l]);
      MUST(decision_unread, row[l] != DECIDED || !holding[l] || IS_READ(l));
      MUST(decision_unsent, row[l] != DECIDED || !holding[l] || known[l] == OPEN || pending[l]);
      MUST(committed_gone, !holding[l] || !IS_GONE(l));
      at_start = (IS_READ(l) -> MAX(at_start, LAST_OF(l)) : at_start)
    }
    MUST(position_repeated, at_start == last);
    at_start = 0; l = 0
  }
}

/* ======================= changes of a row ======================= */
#define IS_NEXT(l) (row[l] == NONE && ((l) == 0 || row[(l) - 1] != NONE))
inline insert(l, state) { last++; row[l] = state; created[l] = last; position[l] = last }
inline grant(l) {
  IS_NEXT(l) -> insert(l, GRANTED); holding[l] = SHARDS; printf("ledger: grants lease %d at %d\n", l, last)
}
inline fence(l) {
  IS_NEXT(l) -> insert(l, FENCE); printf("ledger: fences lease %d at %d\n", l, last)
}
/* In one turn, because an advance in between would take the decision as applied. */
inline decide(l) {
  row[l] == GRANTED -> last++; row[l] = DECIDED; position[l] = last; known[l] = OPEN;
#ifdef C3_DECIDE_CLEARS
  pending[l] = 0;
#endif
  printf("ledger: commits lease %d at %d\n", l, last)
}

#if defined(S1_FORGETS_PENDING)
#define MAY_FORGET(l) (!IS_ABOVE(l))
#elif defined(S1_FORGETS_ABOVE)
#define MAY_FORGET(l) (!pending[l])
#else
#define MAY_FORGET(l) (!pending[l] && !IS_ABOVE(l))
#endif
inline delete(l) { row[l] = FORGOTTEN; created[l] = 0; position[l] = 0; known[l] = UNKNOWN; pending[l] = 0 }
/* The row's positions are at most `through`, so they need not be stored. */
inline forget(l) {
  row[l] == DECIDED && MAY_FORGET(l) -> delete(l); printf("ledger: forgets lease %d\n", l)
}
/* A fence may be above `through` when its time is over (C7). */
inline forget_fence(l) {
  row[l] == FENCE ->
#ifndef H1_FENCE_NOT_NOTED
  pruned = MAX(pruned, position[l]);
#endif
  delete(l); printf("ledger: forgets the fence of lease %d\n", l)
}

/* ======================= delivery ======================= */
/* A message may arrive long after it was sent, so a shard may apply a decision at any time. */
inline apply(l) {
  row[l] == DECIDED && holding[l] -> holding[l]--; printf("a shard: applies lease %d\n", l)
}
inline confirm(l) {
  known[l] == OPEN && !holding[l] -> known[l] = APPLIED; printf("ledger: lease %d is applied\n", l)
}

/* ======================= memory and its limit ======================= */
#ifdef C3_DROPS_ABOVE
#define MAY_DROP(l) 1
#else
#define MAY_DROP(l) (pending[l] || known[l] == APPLIED)
#endif
inline drop(l) {
  known[l] != UNKNOWN && MAY_DROP(l) -> known[l] = UNKNOWN; printf("ledger: drops lease %d from memory\n", l)
}
inline read_pending(l) {
  row[l] == DECIDED && pending[l] && known[l] == UNKNOWN ->
  known[l] = OPEN; printf("ledger: reads the decision of lease %d from the index\n", l)
}

/* ======================= advance ======================= */
#if defined(C3_MARKS_GRANTED)
#define MUST_MARK(l) (row[l] == GRANTED)
#elif defined(R1_MARKS_DECIDED)
#define MUST_MARK(l) (row[l] == DECIDED && known[l] == OPEN)
#else
#define MUST_MARK(l) (row[l] == GRANTED || (row[l] == DECIDED && known[l] == OPEN))
#endif
#ifdef C3_CLEARS_SENT
#define MUST_CLEAR(l) (pending[l] && known[l] != UNKNOWN)
#else
#define MUST_CLEAR(l) (pending[l] && known[l] == APPLIED)
#endif
#ifdef H1_ADVANCES_LESS
#define NEXT_THROUGH MAX(through, last - 1)
#else
#define NEXT_THROUGH last
#endif
#ifdef R1_ADVANCES_UNREAD
#define READ_TO read_to
#else
#define READ_TO NEXT_THROUGH
#endif
inline advance() {
  d_step {
    for (l : 0 .. LEASES - 1) {
      if
      :: EXISTS(l) && IS_ABOVE(l) && created[l] <= READ_TO -> pending[l] = MUST_MARK(l)
      :: EXISTS(l) && MUST_CLEAR(l) -> pending[l] = 0; known[l] = UNKNOWN
      :: else
      fi
    }
    through = NEXT_THROUGH; l = 0; printf("ledger: advances to %d\n", through)
  }
}

/* check() has shown that a start reads all that it must, and the same last position. */
inline crash() {
  d_step {
    for (l : 0 .. LEASES - 1) { known[l] = (row[l] == DECIDED && IS_READ(l) -> OPEN : UNKNOWN) }
    l = 0; printf("ledger: crashes and starts\n")
  }
}

#if LEASES == 2
#define EACH_LEASE(step) :: step(0) :: step(1)
#elif LEASES == 3
#define EACH_LEASE(step) :: step(0) :: step(1) :: step(2)
#else
#define EACH_LEASE(step) :: step(0) :: step(1) :: step(2) :: step(3)
#endif

active proctype Ledger() {
end:
  do
  :: atomic {
       if
       EACH_LEASE(grant)
       EACH_LEASE(fence)
       EACH_LEASE(decide)
       EACH_LEASE(forget)
       EACH_LEASE(forget_fence)
       EACH_LEASE(apply)
       EACH_LEASE(confirm)
       EACH_LEASE(drop)
       EACH_LEASE(read_pending)
       :: advance()
       :: crash()
#ifdef R1_ADVANCES_UNREAD
       :: read_to = last; printf("ledger: reads the rows up to %d\n", last)
#endif
       fi;
       check()
     }
  od
}
