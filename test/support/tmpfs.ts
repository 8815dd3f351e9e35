/** Mounts a disk of so many bytes (`64k`, `12m`) at `dir`, where this process may; gives what removes it. */
export const mountTmpfs = async (dir: string, size: string): Promise<(() => Promise<void>) | undefined> => {
  const { exitCode } = await Bun.$`mount -t tmpfs -o size=${size},mode=700 gatehouse ${dir}`.quiet().nothrow()
  return exitCode === 0 ? async () => void (await Bun.$`umount -l ${dir}`.quiet()) : undefined
}
