import { setMaxListeners } from 'node:events';
import { constants } from 'node:os';
import type { NameRow, NetworkRules } from '../../confine/plan/network-rules.ts';
import type { AskConnection } from '../../gate/index.ts';
import type { ApprovalAnswer } from '../../model/index.ts';
import {
  denialOf,
  insideOfApproved,
  isPlaceholder,
  judgeAddress,
  mayBeAskedAbout,
  normalName,
} from '../../policy/index.ts';
import { type NameServer, textOf } from './name-server.ts';
import type { NativeConnection } from './native-network.ts';

/** Of one command, or one turn of a shell: whoever has to answer more than that answers without looking. */
const MOST_QUESTIONS = 16;

const TOO_MANY: ApprovalAnswer = {
  approved: false,
  reason: 'failed',
  by: 'sandbox-run',
  detail: `the command has been asked about ${MOST_QUESTIONS} times already, which is the most`,
};
const NOT_ASKED: ApprovalAnswer = {
  approved: false,
  reason: 'nobody',
  by: 'sandbox-run',
};

const { ECONNREFUSED, EHOSTUNREACH } = constants.errno;

/** What becomes of a connection: where it leads and what it has to be, or how the command is told that it is refused (0: as always). */
type Outcome =
  | { readonly bytes: readonly number[]; readonly inside?: NameRow['inside'] }
  | { readonly errno: number };

const REFUSED: Outcome = { errno: ECONNREFUSED };

/** Where a command wants to connect to, in the terms of the policy. */
interface Place {
  readonly host: string;
  /** It was found by a name. */
  readonly name: string | undefined;
  /** `undefined`: the address stands for the name, which was not looked up. */
  readonly bytes: readonly number[] | undefined;
  readonly port: number;
}

/** What is known of a host and port that somebody was asked about. */
interface Question {
  readonly answer: Promise<ApprovalAnswer>;
  /** Once it is there. */
  told?: ApprovalAnswer;
  /** Where it led last. */
  address?: string;
  /** It led where it may not. */
  apart?: string;
}

/** What is told of a connection that somebody was asked about. */
interface AskedAbout {
  readonly approval: ApprovalAnswer;
  readonly address: string | undefined;
  readonly apart: string | undefined;
}

/** The questions about connections of one command: about each host and port one, however many connections want to go there. */
export class ConnectionQuestions {
  readonly #rules: NetworkRules;
  readonly #names: NameServer;
  readonly #over = new AbortController();
  readonly #questions = new Map<string, Question>();
  #ask: AskConnection | undefined;
  #tooMany = false;

  constructor(rules: NetworkRules, names: NameServer) {
    this.#rules = rules;
    this.#names = names;
    // Each question that waits listens.
    setMaxListeners(MOST_QUESTIONS, this.#over.signal);
  }

  /** What asks from now on. */
  begin(ask: AskConnection | undefined): void {
    this.#ask = ask;
  }

  /** Where a connection is to lead. Never rejects: what fails is a no. */
  async decide(connection: NativeConnection): Promise<Outcome> {
    try {
      const place = this.#placeOf(connection);
      if (!this.#mayBeAskedAbout(place)) return { errno: 0 };
      const question = this.#questionAbout(place, connection);
      if (question === undefined || !(await question.answer).approved) return REFUSED;
      // As with entries: what was asked for by its address alone is not looked into.
      const inside = place.name === undefined ? undefined : insideOfApproved(this.#rules, place.port);
      if (place.bytes !== undefined) return { bytes: place.bytes, inside };
      const { bytes, apart } = await this.#names.lead(place.host, place.port);
      if (bytes !== undefined) question.address = textOf(bytes);
      if (apart !== undefined) question.apart = apart;
      if (bytes !== undefined)
        return {
          bytes,
          // An entry for the address itself may want a look as well.
          inside: inside ?? judgeAddress(this.#rules.addresses, bytes, place.port).inside,
        };
      return apart === undefined ? { errno: EHOSTUNREACH } : REFUSED;
    } catch {
      return { errno: EHOSTUNREACH };
    }
  }

  /** What came of asking about a place; `undefined`: nobody was asked. */
  about(host: string, port: number): AskedAbout | undefined {
    const question = this.#questions.get(`${host}:${port}`);
    if (question === undefined) return undefined;
    const { told, address, apart } = question;
    return told && { approval: told, address, apart };
  }

  /** Whether somebody has allowed a host that a connection itself asks for. */
  isApproved(host: string, port: number): boolean {
    return this.about(normalName(host) ?? host, port)?.approval.approved === true;
  }

  /** Of a connection that is not allowed and about which nobody was asked: whether that is because of too many. */
  get refusedUnasked(): ApprovalAnswer | undefined {
    return this.#tooMany ? TOO_MANY : undefined;
  }

  /** What was said is forgotten: it was for what has ended. What still waits for an answer goes on. */
  forget(): void {
    this.#tooMany = false;
    for (const [key, { told }] of this.#questions) if (told !== undefined) this.#questions.delete(key);
  }

  /** Nobody waits for answers any more. */
  end(): void {
    this.#over.abort();
  }

  #placeOf({ address, port }: NativeConnection): Place {
    const bytes = [...address];
    const text = textOf(bytes);
    const name = isPlaceholder(bytes) ? this.#names.standsFor(text) : this.#names.nameOf(text);
    const isStandIn = isPlaceholder(bytes) && name !== undefined;
    return { host: name ?? text, name, bytes: isStandIn ? undefined : bytes, port };
  }

  #mayBeAskedAbout({ name, bytes, port }: Place): boolean {
    if (name !== undefined && denialOf(this.#rules.names, name, port) !== undefined) return false;
    return (
      bytes === undefined || mayBeAskedAbout(this.#rules.addresses, bytes, port, this.#names.openAddresses())
    );
  }

  /** `undefined`: so many were asked that nobody is any more. */
  #questionAbout({ host, port }: Place, { program, pid }: NativeConnection): Question | undefined {
    const key = `${host}:${port}`;
    const known = this.#questions.get(key);
    if (known !== undefined) return known;
    if (this.#questions.size >= MOST_QUESTIONS) {
      this.#tooMany = true;
      return undefined;
    }
    const answer = this.#ask?.({ host, port, program, pid }, this.#over.signal) ?? Promise.resolve(NOT_ASKED);
    const question: Question = { answer };
    this.#questions.set(key, question);
    void answer.then((told) => {
      question.told = told;
    });
    return question;
  }
}
