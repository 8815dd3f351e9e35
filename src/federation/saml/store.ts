import { getSetting, putSetting } from '#src/storage/settings.ts'
import type { Queries, Transaction } from '#src/storage/store.ts'

/** Stored key pair: the private key as sealed PKCS #8 in base64, the certificate as DER in base64. */
export interface StoredKey {
  private_key: string
  certificate: string
}

const NAME = 'saml_key'

/** Returns the sealed key pair of the SAML service provider. */
export const findSamlKey = (q: Queries): Promise<StoredKey | undefined> => getSetting(q, NAME)

/** Stores the key unless another process has already stored a key. */
export const insertSamlKey = async (tx: Transaction, key: StoredKey, now: number): Promise<void> => {
  if (!(await findSamlKey(tx))) await putSetting(tx, NAME, key, now)
}
