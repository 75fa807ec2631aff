import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { isLoopback, type Policy, type Publication } from '../../model/index.ts';

/** Why nothing can be published with a plan; `undefined`: it can. */
export function whyNotPublished({ report, network, namespaces }: LaunchPlan): string | undefined {
  const { backend } = report;
  if (backend === 'firejail' || backend === 'application')
    return `the backend ${backend} cannot publish ports, only landlock and namespaces can`;
  if (network === 'refused' || (network === 'isolated' && namespaces?.network !== true))
    return 'with the network off commands have no sockets on this host, as it has no namespaces for them; --net @own gives them a loopback interface of their own, and ports can be published then';
  return undefined;
}

/** The plan with a report that says who can connect to commands. */
export function withPublished(plan: LaunchPlan, { network: { publish } }: Policy): LaunchPlan {
  if (publish.length === 0 || whyNotPublished(plan) !== undefined) return plan;
  const [sockets, ports] = [publish.filter(isSocket), publish.filter((one) => !isSocket(one))];
  const others = ports.every(({ address }) => isLoopback(address)) ? '' : ' and other machines';
  const ways = [
    ...(ports.length === 0
      ? []
      : [`programs of this machine (also those of other users)${others} to ${ports.map(portOf).join(', ')}`]),
    ...(sockets.length === 0
      ? []
      : [`programs that may use its socket to ${sockets.map(({ inner }) => `port ${inner}`).join(', ')}`]),
  ];
  // A sandbox with a listed network has no network namespace, only its own address on the host's loopback (native/notify/own_loopback.h).
  const where =
    plan.network === 'listed'
      ? ', at an address of the sandbox on this host’s loopback; while no command listens there, another program of this host that listens at that port gets these connections'
      : '';
  const said = `; some can connect in: ${ways.join(', ')} (network.publish)${where}`;
  const { report } = plan;
  const controls = report.controls.map((control) =>
    control.id === 'network' ? { ...control, reason: `${control.reason}${said}` } : control,
  );
  return { ...plan, report: { ...report, controls } };
}

const isSocket = ({ socket }: Publication) => socket !== undefined;

function portOf({ port, orFree, inner, address }: Publication): string {
  const at =
    port === 0
      ? ' at any free one'
      : port === inner && !orFree
        ? ''
        : ` at ${port}${orFree ? ' or higher' : ''}`;
  return `port ${inner}${at}${address === undefined ? '' : ` of ${address}`}`;
}
