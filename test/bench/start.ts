import { startGatehouse } from './gatehouse.ts'
import { median } from './load.ts'
import { startPeer } from './peer.ts'
import {
  freshDirectory,
  type Memory,
  memoryOf,
  removeDirectory,
  type ServerProcess,
} from './server-process.ts'

export interface Start {
  /**
   * Milliseconds from the spawn to the first answer. The `first` start has an empty directory. The start
   * `again` has a directory with keys and a database.
   */
  first: number
  again: number
  /** Resident memory in MiB, a moment after a start with keys. */
  idle: Memory
}

const SETTLE = 1_000

const measureStart = async (
  rounds: number,
  startIn: (directory: string) => Promise<ServerProcess>,
): Promise<Start> => {
  const first: number[] = []
  const again: number[] = []
  let idle: Memory = { rss: Number.NaN, pss: Number.NaN }
  for (let round = 0; round < rounds; round++) {
    const directory = await freshDirectory()
    const cold = await startIn(directory)
    first.push(cold.started_in)
    await cold.stop()
    const warm = await startIn(directory)
    again.push(warm.started_in)
    if (round === 0) {
      await Bun.sleep(SETTLE)
      idle = memoryOf(warm.pid)
    }
    await warm.stop()
    await removeDirectory(directory)
  }
  return { first: median(first), again: median(again), idle }
}

export const gatehouseStart = (rounds: number): Promise<Start> => measureStart(rounds, startGatehouse)

export const peerStart = (rounds: number, node: string): Promise<Start> =>
  measureStart(rounds, directory => startPeer(node, directory))
