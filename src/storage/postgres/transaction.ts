import { isConflict, isLost } from '#src/storage/errors.ts'
import type { Queries, Topic, Transaction } from '#src/storage/store.ts'
import type { Added } from '#src/storage/sums.ts'

type Outcomes = Map<string, () => unknown>

/** State of the current transaction. */
export interface TransactionState {
  /** The first error from PostgreSQL, after which the transaction cannot be committed. */
  failure: unknown
  topics: Set<Topic>
  effects: (() => void)[]
  /**
   * Outcomes by the name of the effect. Such an effect runs once, even if the write needs several attempts.
   * An outcome is a function that returns the result of the effect or throws its error.
   */
  outcomes: Outcomes
  /** Statements that the body does not wait for. */
  sent: Promise<unknown>[]
  /** Amounts that `writeSums` adds at the end of the transaction. */
  added: Added[]
  savepoints: number
}

/** Returns the state of a new transaction. All attempts of a write share `outcomes`. */
export const begun = (outcomes: Outcomes = new Map()): TransactionState => ({
  failure: undefined,
  topics: new Set(),
  effects: [],
  outcomes,
  sent: [],
  added: [],
  savepoints: 0,
})

/** Result of `later`. The promise is already resolved, because the body must not wait for the statement. */
const SENT = Promise.resolve()

const outcomeOf = <T>(effect: () => T): (() => T) => {
  try {
    const value = effect()
    return () => value
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** Waits for the statements in `sent`. */
export const settleSent = (state: TransactionState) => Promise.all(state.sent.splice(0))

/** Returns the transaction of a connection. `run` sends a statement to this connection. */
export const transactionOf = (
  queries: Queries,
  run: (statement: string) => Promise<unknown>,
  state: TransactionState,
): Transaction =>
  Object.assign(queries, {
    changed: (topic: Topic) => void state.topics.add(topic),
    after: (effect: () => void) => void state.effects.push(effect),
    once: <T>(name: string, effect: () => T): T => {
      const outcome = state.outcomes.get(name) ?? outcomeOf(effect)
      state.outcomes.set(name, outcome)
      return outcome() as T
    },
    later: (statement: Promise<unknown>) => {
      const settled = statement.catch(error => {
        state.failure ??= error
      })
      state.sent.push(settled)
      return SENT
    },
    add: (...call: Added) => void state.added.push(call),
    nested: async <T>(body: () => Promise<T>): Promise<T> => {
      const name = `nested_${++state.savepoints}`
      await run(`SAVEPOINT ${name}`)
      const before = {
        topics: new Set(state.topics),
        effects: state.effects.length,
        added: state.added.length,
      }
      try {
        const value = await body()
        await settleSent(state)
        if (state.failure) throw state.failure
        await run(`RELEASE ${name}`)
        return value
      } catch (error) {
        await settleSent(state)
        // After these failures the whole body must run again (writer.ts). After a conflict, a rollback to the
        // savepoint would keep the snapshot, which would conflict again. A lost connection has no savepoint.
        if (isConflict(state.failure) || isLost(state.failure)) throw state.failure
        await run(`ROLLBACK TO ${name}`)
        await run(`RELEASE ${name}`)
        state.failure = undefined
        state.topics = before.topics
        state.effects.length = before.effects
        state.added.length = before.added
        throw error
      } finally {
        state.savepoints--
      }
    },
  })
