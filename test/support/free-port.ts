/** The system gives ports from 32768 on to connections and to servers that ask for any port. */
const [FIRST, END] = [20_000, 32_000]

// The two processes of a run begin at different ports.
let next = FIRST + ((process.pid * 101) % (END - FIRST))

/**
 * Returns a port that no program uses. The system gives it to no other program before the test uses it,
 * because the system does not choose from this range.
 */
export const freePort = (): number => {
  for (;;) {
    const port = next++
    if (next === END) next = FIRST
    try {
      Bun.listen({ hostname: '0.0.0.0', port, socket: { data() {} } }).stop(true)
      return port
    } catch {
      // Another program uses this port.
    }
  }
}
