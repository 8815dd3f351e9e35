/** Returns the result of the work, and the number of turns that the event loop makes during the work. */
export const turnsOf = async <T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> => {
  let [turns, isOver] = [0, false]
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const result = await work()
  isOver = true
  return { result, turns }
}
