import { type ProgramRow, programs } from '../behaviour.ts';

/** Programs that manage machines and services elsewhere. */
export const CLOUD: readonly ProgramRow[] = [
  ...programs(
    'aws gcloud gsutil bq az doctl heroku fly flyctl railway oci ibmcloud linode-cli hcloud s3cmd rclone restic borg eksctl kops argocd flux istioctl supabase stripe',
    'high',
    'network',
    {
      operands: 'none',
      needs: 'network',
      outward: 'changes what runs or is stored elsewhere',
    },
  ),
  ...programs(
    'terraform tofu terragrunt pulumi cdk cdktf sam serverless packer vagrant ansible-galaxy helmfile',
    'high',
    'network',
    {
      operands: 'guess',
      outward: 'changes what runs or is stored elsewhere',
      verbs: {
        fmt: { risk: 'medium', reach: 'local' },
        validate: { risk: 'medium' },
        version: { risk: 'low' },
      },
    },
  ),
  ...programs('helm kustomize skaffold tilt kind minikube k3d k3s k9s', 'high', 'network', {
    operands: 'guess',
    outward: 'changes what runs elsewhere',
  }),
];
