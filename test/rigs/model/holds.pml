/*
 * How a shard keeps its holds in its log, whose rows are a ring (B4, H10, K5 of docs/reference/protocol.md).
 * The holds are in memory, and a start reads them from the rows. lease.pml says when a hold begins and ends;
 * here, a transaction may begin and end any of them. docs/internals/model.md lists the abstractions. main.ts
 * runs this file with the bounds and switches of runs.ts.
 *
 *   piece   the names that one transaction gave to one execution
 *   row     what one transaction writes. `holds` has entries: pieces that began, or that were carried here,
 *           with the names that are left. `ended` has pieces that ended, or some of their names. `open_from`
 *           is the oldest row that has an entry in use.
 *   carry   If the oldest entry in use is more than FAR rows back, the new row takes at least one of the
 *           oldest entries.
 *
 * Row r is r rows back, and row 0 is the one that the next transaction writes. The number of a piece is used
 * again when no row mentions it. So there are finitely many states, and the search covers any number of
 * transactions.
 *
 * After each step, check() carries out a start and compares the result with memory. So a crash leads to the
 * same state and has no step of its own. A crash that loses transactions leads to the state before them.
 *
 * With ALL_ROWS, a start reads every row. Otherwise, rows before `open_from` are forgotten.
 */

/* ---- bounds ---- */
#ifndef NAMES
#define NAMES 2          /* 2 or 3. Carrying keeps up if each name can be a piece and NAMES <= ROWS - FAR. */
#endif
#ifndef ROWS
#define ROWS 4           /* the slots of the ring */
#endif
#ifndef FAR
#define FAR 2
#endif
#ifndef OPS
#define OPS 2            /* how many pieces and holds one transaction begins and ends */
#endif
#define PIECES 8         /* numbers of pieces, enough that one is always free */

#define BIT(n) (1 << (n))
#define WHOLE 8          /* in `ended`: the piece ends; otherwise, bit n says that its hold of name n ends */
#define CARRIED 16       /* in `holds`: for H1_SKIPS_CARRIED */

/* ---- the log ---- */
byte holds[(ROWS + 1) * PIECES]; /* bit n: the piece holds name n; 0: the row has no entry of the piece */
byte ended[(ROWS + 1) * PIECES];
byte open_from;          /* that of the newest row */
#define HOLDS(r,p) holds[(r) * PIECES + (p)]
#define ENDED(r,p) ended[(r) * PIECES + (p)]

/* ---- memory ---- */
byte own[3];             /* the piece that holds the name, + 1; 0: free */
byte at[PIECES];         /* the row that has the entry of a piece in use */

/* ---- bookkeeping of the model itself ---- */
byte held[3];            /* as `own`: what the transactions did */
byte got[3], gat[PIECES]; /* as `own` and `at`: what a start reads */
byte i, n, r, p, ops;
bool carried;
#ifdef H1_BY_SINCE
byte since[PIECES];      /* the row in which the piece began */
#endif

/* ======================= properties ======================= */
#define MUST(name, condition) assert((condition) || name == 0)
#define hold_lost               1 /* each name that is held is in memory, and a start finds it */
#define hold_invented           2 /* no other name is in memory, and a start finds no other */
#define entry_overwritten       3 /* no row is replaced that has an entry in use */
#define wrong_row               4 /* memory knows the row of each entry in use */

/* ======================= a start ======================= */
inline read_holds() {
  for (i : 0 .. PIECES - 1) {
    if
    :: HOLDS(r,i) && !(HOLDS(r,i) & CARRIED) ->
       gat[i] = r;
       for (n : 0 .. NAMES - 1) {
         if
         :: HOLDS(r,i) & BIT(n) -> got[n] = i + 1
         :: else -> got[n] = (got[n] == i + 1 -> 0 : got[n])
         fi
       }
    :: else
    fi
  }
}
#if defined(H1_IGNORES_ENDED)
#define ENDS(p,n) 0
#elif defined(H1_PART_IS_WHOLE)
#define ENDS(p,n) (got[n] == (p) + 1 && ENDED(r,p))
#elif defined(H1_ENDED_BY_NAME)
#define ENDS(p,n) ((ENDED(r,p) & BIT(n)) || (got[n] == (p) + 1 && (ENDED(r,p) & WHOLE)))
#else
#define ENDS(p,n) (got[n] == (p) + 1 && (ENDED(r,p) & (WHOLE | BIT(n))))
#endif
inline read_ended() {
  for (i : 0 .. PIECES - 1) {
    if
    :: ENDED(r,i) -> for (n : 0 .. NAMES - 1) { got[n] = (ENDS(i,n) -> 0 : got[n]) }
    :: else
    fi
  }
}
#ifdef ALL_ROWS
#define FIRST_READ ROWS
#else
#define FIRST_READ open_from
#endif
/* The order of `holds` and `ended` within a row makes no difference. */
inline start(ended_first) {
  r = FIRST_READ + 1;
  do
  :: r > 0 && ended_first -> r--; read_ended(); read_holds()
  :: r > 0 && !(ended_first) -> r--; read_holds(); read_ended()
  :: else -> break
  od;
  for (n : 0 .. NAMES - 1) {
    if
    :: own[n] != held[n] || got[n] != held[n] ->
       printf("name %d: held by piece %d, in memory by %d, at a start by %d (-1: none)\n", n, held[n] - 1,
         own[n] - 1, got[n] - 1)
    :: else
    fi;
    MUST(hold_lost, !held[n] || (own[n] == held[n] && got[n] == held[n]));
    MUST(hold_invented, held[n] || (!own[n] && !got[n]));
    MUST(wrong_row, !held[n] || at[held[n] - 1] == gat[held[n] - 1]);
    got[n] = 0
  }
  for (i : 0 .. PIECES - 1) { gat[i] = 0 }
  i = 0; n = 0
}
inline check() { start(0); start(1) }

/* ======================= a transaction ======================= */
/* The names that a piece holds. */
#define HAS(p,n) ((own[n] == (p) + 1) << (n))
#define LEFT(p) (HAS(p,0) | HAS(p,1) | HAS(p,2))
#define IS_FREE(names) (!((names) & ((own[0] != 0) | ((own[1] != 0) << 1) | ((own[2] != 0) << 2))))
#define MAY_CHANGE (ops < OPS && !carried)

#define IS_IN(r,p) (LEFT(p) || HOLDS(r,p) || ENDED(r,p))
inline choose_number() {
  do
  :: r < ROWS && !IS_IN(r,p) -> r++
  :: r < ROWS && IS_IN(r,p) -> r = 0; p++; assert(p < PIECES)
  :: r == ROWS -> break
  od;
  r = 0
}
/* B4: all names or none. A refusal changes nothing, so the model lets no other change follow it. */
inline prepare(names) {
  d_step {
    MAY_CHANGE -> ops++;
    choose_number();
    if
    :: IS_FREE(names) ->
       printf("shard: grants names %d (bits) to piece %d\n", names, p);
#ifdef H1_BY_SINCE
       since[p] = 0;
#endif
       at[p] = 0;
       for (n : 0 .. NAMES - 1) { if :: (names) & BIT(n) -> own[n] = p + 1; held[n] = p + 1 :: else fi }
    :: else ->
       printf("shard: refuses names %d\n", names); ops = OPS;
#ifdef B4_REFUSED_STAYS
       for (n : 0 .. NAMES - 1) { if :: ((names) & BIT(n)) && !own[n] -> own[n] = p + 1 :: else fi }
#endif
    fi;
    n = 0; p = 0
  }
}
/* What a piece loses in the transaction in which it begins is in no row. */
#define IS_NEW(p) (at[p] == 0)
inline end_piece(name) {
  d_step {
    MAY_CHANGE && own[name] -> ops++; p = own[name] - 1;
    printf("shard: ends piece %d\n", p);
    if :: !IS_NEW(p) -> ENDED(0,p) = WHOLE :: else fi;
    for (n : 0 .. NAMES - 1) { if :: own[n] == p + 1 -> own[n] = 0; held[n] = 0 :: else fi }
    n = 0; p = 0
  }
}
inline end_name(name) {
  d_step {
    MAY_CHANGE && own[name] -> ops++; p = own[name] - 1;
    printf("shard: ends name %d of piece %d\n", name, p);
    if
    :: !IS_NEW(p) -> ENDED(0,p) = ENDED(0,p) | BIT(name)
    :: else
#ifdef B4_KEEPS_ENDED
       -> HOLDS(0,p) = HOLDS(0,p) | BIT(name)
#endif
    fi;
    own[name] = 0; held[name] = 0; p = 0
  }
}

#ifdef H1_BY_SINCE
#define AGE(p) (since[p] * PIECES - (p))
#else
#define AGE(p) at[p]
#endif
#define MAX(a,b) ((a) > (b) -> (a) : (b))
#define AGE_OF(n) (own[n] -> AGE(own[n] - 1) : 0)
#define OLDEST MAX(AGE_OF(0), MAX(AGE_OF(1), AGE_OF(2)))
#define IS_OLDEST(p) (at[p] > 0 && AGE(p) == OLDEST)
#if defined(H1_NOT_CARRIED)
#define IS_DUE(p) 0
#elif defined(H1_CARRIES_LATE)
#define IS_DUE(p) (IS_OLDEST(p) && at[p] > FAR + 1)
#else
#define IS_DUE(p) (IS_OLDEST(p) && at[p] > FAR)
#endif
#define IS_DUE_AT(n) (own[n] && IS_DUE(own[n] - 1))
#define MUST_CARRY (!carried && (IS_DUE_AT(0) || IS_DUE_AT(1) || IS_DUE_AT(2)))
inline carry(name) {
  d_step {
    (MUST_CARRY || carried) && own[name] && IS_OLDEST(own[name] - 1) -> carried = 1; p = own[name] - 1;
    printf("shard: carries piece %d from row %d\n", p, at[p]);
#ifdef B4_CARRIES_ENDED
    HOLDS(0,p) = HOLDS(at[p],p);
#endif
#ifdef H1_SKIPS_CARRIED
    HOLDS(0,p) = CARRIED;
#endif
#ifdef H1_ROW_NOT_NOTED
    HOLDS(0,p) = LEFT(p);
#else
    at[p] = 0;
#endif
    p = 0
  }
}

#ifdef H1_OPEN_FROM
#define IS_OPEN(p) (LEFT(p) == HOLDS(at[p],p))
#else
#define IS_OPEN(p) 1
#endif
/* The entries have what is left after everything else in the transaction. */
inline write_row() {
  d_step {
    !MUST_CARRY -> open_from = 0;
    for (p : 0 .. PIECES - 1) {
      if
      :: LEFT(p) && at[p] == 0 ->
#ifdef B4_ONE_ENTRY
         if :: n == 0 -> HOLDS(0,p) = LEFT(p); n = 1 :: else fi
#else
         HOLDS(0,p) = HOLDS(0,p) | LEFT(p)
#endif
      :: LEFT(p) && at[p] > 0 -> open_from = (IS_OPEN(p) -> MAX(open_from, at[p]) : open_from)
#ifdef B4_CARRIES_DEAD
      :: !LEFT(p) && at[p] > FAR && !ENDED(0,p) ->
         printf("shard: carries piece %d from row %d\n", p, at[p]); HOLDS(0,p) = HOLDS(at[p],p); at[p] = 0
      :: else
#else
      :: else -> at[p] = 0
#endif
      fi
    }
    printf("shard: writes the row, open_from is row %d\n", open_from);
    MUST(entry_overwritten, open_from < ROWS);
    open_from++;
    r = ROWS;
    do
    :: r > 0 ->
       for (p : 0 .. PIECES - 1) {
         HOLDS(r,p) = (r <= FIRST_READ -> HOLDS(r - 1,p) : 0);
         ENDED(r,p) = (r <= FIRST_READ -> ENDED(r - 1,p) : 0)
       }
       r--
    :: else -> break
    od;
    for (p : 0 .. PIECES - 1) {
      HOLDS(0,p) = 0; ENDED(0,p) = 0; at[p] = (LEFT(p) || at[p] -> at[p] + 1 : 0);
#ifdef H1_BY_SINCE
      since[p]++
#endif
    }
    n = 0; p = 0; ops = 0; carried = 0;
    check()
  }
}

/* ======================= erasure (K5) ======================= */
#if defined(K5_IN_USE)
#define MAY_ERASE(p,name) 1
#elif defined(K5_ENDED_ALONE)
#define MAY_ERASE(p,name) (!LEFT(p))
#else
#define MAY_ERASE(p,name) (own[name] != (p) + 1)
#endif
/* The name leaves `ended` and the entries of pieces that no longer hold it in one step. */
inline erase(name) {
  d_step {
    printf("shard: erases name %d\n", name);
    for (r : 1 .. ROWS) {
      for (p : 0 .. PIECES - 1) {
        HOLDS(r,p) = (MAY_ERASE(p,name) -> HOLDS(r,p) & ~BIT(name) : HOLDS(r,p));
        ENDED(r,p) = ENDED(r,p) & ~BIT(name)
      }
    }
    r = 0; p = 0;
    check()
  }
}

#if NAMES == 3
#define EACH_NAME(step) :: step(0) :: step(1) :: step(2)
#define EACH_SET(step) :: step(1) :: step(2) :: step(3) :: step(4) :: step(5) :: step(6)
#else
#define EACH_NAME(step) :: step(0) :: step(1)
#define EACH_SET(step) :: step(1) :: step(2) :: step(3)
#endif

active proctype Shard() {
end:
  do
  :: atomic {
       do
       EACH_SET(prepare)
       EACH_NAME(end_piece)
       EACH_NAME(end_name)
       EACH_NAME(carry)
       :: write_row() -> break
       od
     }
  EACH_NAME(erase)
  od
}
