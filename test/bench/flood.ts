import { connect } from './connection.ts'
import { type Duration, type Measured, measure } from './load.ts'
import { operations, passwordLogin } from './operations.ts'
import { processesOf, type Target } from './target.ts'

const BROWSERS = 16

/**
 * Measures refreshes at 8 connections: first alone, then while browsers sign in as fast as the server allows
 * (R-16).
 */
export const measureFlood = async (
  target: Target,
  duration: Duration,
): Promise<{ idle: Measured; flooded: Measured }> => {
  const refresh = operations.find(({ name }) => name === 'refresh')
  const connections = await Promise.all(
    Array.from({ length: 8 + BROWSERS }, () => connect(target.process.port)),
  )
  const prepared = await Promise.all(connections.slice(0, 8).map(each => refresh?.prepare(target, each)))
  const steps = prepared.filter(step => step !== undefined)
  try {
    const idle = await measure(processesOf(target), steps, duration)
    let over = false
    const flood = connections.slice(8).map(async connection => {
      const logIn = passwordLogin(target, connection)
      // Logins that the queue refuses (503) are retried at once, as impatient users do.
      while (!over) await logIn()
    })
    const flooded = await measure(processesOf(target), steps, duration)
    over = true
    await Promise.all(flood)
    return { idle, flooded }
  } finally {
    for (const connection of connections) connection.close()
  }
}
