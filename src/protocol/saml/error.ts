/** Why a SAML message was refused: for the audit log and the server's own log, never for the person at the browser. */
export type SamlReason =
  | 'too_large'
  | 'too_costly'
  | 'bad_encoding'
  | 'bad_xml'
  | 'bad_shape'
  | 'no_certificate'
  | 'unsigned'
  | 'bad_algorithm'
  | 'bad_signature'
  | 'not_decrypted'
  | 'status'
  | 'no_assertion'
  | 'wrong_issuer'
  | 'wrong_destination'
  | 'wrong_recipient'
  | 'wrong_audience'
  | 'wrong_request'
  | 'unsolicited'
  | 'bad_time'
  | 'not_yet_valid'
  | 'expired'
  | 'old_authentication'
  | 'no_subject'

/** A SAML message that is not believed. `detail` is for people who read logs, and bounded. */
export class SamlError extends Error {
  override readonly name = 'SamlError'
  readonly reason: SamlReason

  constructor(reason: SamlReason, detail: string = reason, options?: ErrorOptions) {
    super(detail.slice(0, 200), options)
    this.reason = reason
  }
}
