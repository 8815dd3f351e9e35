/**
 * Mounts a tmpfs of this size (`64k`, `12m`) at `dir`. Returns a function that unmounts it. Returns undefined
 * if mounting is not permitted.
 */
export const mountTmpfs = async (dir: string, size: string): Promise<(() => Promise<void>) | undefined> => {
  const { exitCode } = await Bun.$`mount -t tmpfs -o size=${size},mode=700 gatehouse ${dir}`.quiet().nothrow()
  return exitCode === 0 ? async () => void (await Bun.$`umount -l ${dir}`.quiet()) : undefined
}
